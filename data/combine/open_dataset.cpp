// SPDX-License-Identifier: Apache-2.0
#include "data/combine/open_dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"
#include "data/combine/combinations.h"
#include "data/combine/dataset_modifiers.h"
#include "data/sources/anemoi_dataset.h"
#include "data/sources/netcdf_dataset.h"

namespace aifs::data {

namespace {

using config::Json;

// Describes what a dataset inherits from those it stands in.
struct Surroundings {
  const StoreOpener& open_store;
  VariableChecks checks = {};
  bool strict = false;
  int64_t cache_mib = 0;
};

DatasetPtr open_tree(const DatasetTree& tree, const Surroundings& around);

Indifference read_indifference(const Json& json, const std::string& path) {
  const auto wrong = [&] {
    throw ConfigError(path, concat("got ", json_shown(json, 60),
                                   ", allowed is true, false, a name or a list of names"));
  };
  Indifference result;
  if (json.is_boolean()) {
    result.all = json.get<bool>();
  } else if (json.is_string()) {
    result.names.insert(json.get<std::string>());
  } else if (json.is_array()) {
    for (const Json& name : json) {
      if (!name.is_string()) wrong();
      result.names.insert(name.get<std::string>());
    }
  } else {
    wrong();
  }
  return result;
}

VariableChecks read_checks(const Json& json, const std::string& path) {
  VariableChecks checks;
  if (!json.is_object()) {
    throw ConfigError(path, concat("got ", json_shown(json, 60), ", allowed is an object"));
  }
  for (const auto& [key, value] : json.items()) {
    const std::string at = concat(path, ".", key);
    if (key == "ignore_units")
      checks.units = read_indifference(value, at);
    else if (key == "ignore_time_processing")
      checks.process = read_indifference(value, at);
    else if (key == "ignore_processing_period")
      checks.period = read_indifference(value, at);
    else if (key == "ignore_type_of_level")
      checks.level_type = read_indifference(value, at);
    else {
      const std::vector<std::string> keys{"ignore_units", "ignore_time_processing",
                                          "ignore_processing_period", "ignore_type_of_level"};
      throw ConfigError(at, "no such key", nearest_names(key, keys));
    }
  }
  return checks;
}

// "all", "dates" and lists of such words as what they stand for.
std::set<std::string> read_adjust(const Json& json, const std::string& path) {
  const std::map<std::string, std::set<std::string>> kMeaning{
      {"all", {"select", "start", "end", "frequency"}},
      {"dates", {"start", "end", "frequency"}},
      {"variables", {"select"}},
      {"select", {"select"}},
      {"start", {"start"}},
      {"end", {"end"}},
      {"frequency", {"frequency"}}};
  std::set<std::string> what;
  for (const Json& word : json.is_array() ? json : Json::array({json})) {
    const auto found = word.is_string() ? kMeaning.find(word.get<std::string>()) : kMeaning.end();
    if (found == kMeaning.end()) {
      throw ConfigError(path, concat("got ", json_shown(word, 60),
                                     ", allowed is all, dates, "
                                     "variables, select, start, end or frequency, or a list"));
    }
    what.insert(found->second.begin(), found->second.end());
  }
  return what;
}

CombinationPlace place_of(const DatasetTree& tree, const std::string& key,
                          const Surroundings& around) {
  return {tree.path_of(key), around.checks};
}

std::vector<DatasetPtr> open_list(const DatasetTree& tree, const std::string& key,
                                  const Surroundings& around) {
  std::vector<DatasetPtr> datasets;
  const Json list = tree.value(key);
  for (size_t i = 0; i < list.size(); ++i)
    datasets.push_back(
        open_tree(parse_dataset(list[i], concat(tree.path_of(key), ".", i)), around));
  return datasets;
}

void adjust(const DatasetTree& tree, const std::set<std::string>& but,
            std::vector<DatasetPtr>& datasets) {
  if (!tree.has("adjust")) return;
  std::set<std::string> what = read_adjust(tree.value("adjust"), tree.path_of("adjust"));
  const auto refuse_both = [&](const std::string& key, bool is_given) {
    if (!is_given || !what.contains(key)) return;
    throw ConfigError(
        tree.path_of(key), "is adjusted already, by adjust",
        "put one dataset into another: {\"dataset\": {.., \"adjust\": ..}, \"" + key + "\": ..}");
  };
  refuse_both("select", !tree.select.empty());
  refuse_both("start", !tree.start.empty());
  refuse_both("end", !tree.end.empty());
  refuse_both("frequency", !tree.frequency.empty());
  for (const std::string& key : but)
    what.erase(key);
  datasets = adjusted(datasets, what, tree.path_of("adjust"));
}

// A list without a word: side by side if the dates are the same, else one after the other.
DatasetPtr join_or_concat(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place) {
  if (datasets.size() == 1) return datasets.front();
  const auto& first = datasets.front()->info().dates_s;
  const bool same_dates = std::all_of(datasets.begin(), datasets.end(), [&](const auto& dataset) {
    const auto& dates_s = dataset->info().dates_s;
    return dates_s.front() == first.front() && dates_s.back() == first.back();
  });
  return same_dates ? join_variables(datasets, place) : join_dates(datasets, false, place);
}

CutoutOptions read_cutout(const DatasetTree& tree) {
  CutoutOptions options;
  const auto number = [&](const char* key) { return tree.value(key).get<double>(); };
  if (tree.has("min_distance_km")) options.min_distance_km = number("min_distance_km");
  if (tree.has("max_distance_km")) options.max_distance_km = number("max_distance_km");
  if (tree.has("cropping_distance")) options.cropping_distance_deg = number("cropping_distance");
  if (tree.has("neighbours")) options.neighbours = tree.value("neighbours").get<int64_t>();
  return options;
}

// The options of a tree that its data are wanted with, but for those that are used up.
DatasetPtr modified(const DatasetPtr& dataset, const DatasetTree& tree,
                    const Surroundings& around) {
  const auto open_inside = [&](const Json& json, const std::string& path) {
    return open_tree(parse_dataset(json, path), around);
  };
  return apply_options(dataset, tree, open_inside);
}

// Options of the object count for the added variables only, as in Anemoi.
DatasetPtr complement(const DatasetTree& tree, const Surroundings& around) {
  const CombinationPlace place = place_of(tree, "complement", around);
  std::vector<DatasetPtr> both{
      open_tree(parse_dataset(tree.value("source"), tree.path_of("source")), around),
      open_tree(parse_dataset(tree.value("complement"), place.path), around)};
  adjust(tree, {"select"}, both);
  const DatasetPtr source = both[0], target = both[1];
  std::optional<NearestOptions> nearest;
  const std::string interpolation =
      tree.has("interpolation") ? tree.value("interpolation").get<std::string>() : "none";
  if (interpolation == "nearest") {
    nearest.emplace();
    if (tree.has("k")) nearest->num_neighbours = tree.value("k").get<int64_t>();
    if (tree.has("max_distance")) nearest->max_distance = tree.value("max_distance").get<double>();
  } else if (interpolation != "none") {
    throw ConfigError(tree.path_of("interpolation"),
                      concat("got \"", interpolation, "\", allowed is none or nearest"));
  } else if (tree.has("k") || tree.has("max_distance")) {
    throw ConfigError(tree.path_of(tree.has("k") ? "k" : "max_distance"),
                      "means nothing without interpolation \"nearest\"");
  }
  const DatasetPtr added = modified(on_grid_of(target, source, nearest, place), tree, around);
  return sorted_by_name(join_or_concat({target, added}, place));
}

// What joins a list of datasets, by its key.
struct Combination {
  const char* key;
  bool may_be_one;  // a list of one is that dataset
  DatasetPtr (*combine)(const DatasetTree& tree, const std::vector<DatasetPtr>& datasets,
                        const CombinationPlace& place);
};

// A way of joining that has no options in the tree.
template <auto join>
DatasetPtr plainly(const DatasetTree&, const std::vector<DatasetPtr>& datasets,
                   const CombinationPlace& place) {
  return join(datasets, place);
}

DatasetPtr join_dates_of(const DatasetTree& tree, const std::vector<DatasetPtr>& datasets,
                         const CombinationPlace& place) {
  return join_dates(datasets, tree.value("fill_missing_gaps") == Json(true), place);
}

DatasetPtr join_cutout_of(const DatasetTree& tree, const std::vector<DatasetPtr>& datasets,
                          const CombinationPlace& place) {
  return join_cutout(datasets, read_cutout(tree), place);
}

constexpr Combination kCombinations[] = {
    {"dataset", true, plainly<join_or_concat>}, {"datasets", true, plainly<join_or_concat>},
    {"join", true, plainly<join_variables>},    {"concat", true, join_dates_of},
    {"ensemble", false, plainly<join_members>}, {"grids", false, plainly<join_grids>},
    {"cutout", false, join_cutout_of}};

// What fields are read from, by its key: options are those of the tree as they count inside it.
struct NamedSource {
  const char* key;
  DatasetPtr (*open)(const DatasetOptions& options, const StoreOpener& open_store);
};

constexpr NamedSource kNamedSources[] = {
    {"dataset",
     [](const DatasetOptions& options, const StoreOpener& open_store) -> DatasetPtr {
       return std::make_shared<AnemoiDataset>(open_store(options.dataset), options);
     }},
    {"netcdf", [](const DatasetOptions& options, const StoreOpener&) -> DatasetPtr {
       return std::make_shared<NetcdfDataset>(options);
     }}};

// Returns the entry of a key in a table, or null.
template <class Entry, size_t n>
const Entry* find_entry(const Entry (&table)[n], const std::string& key) {
  const Entry* found = std::find_if(std::begin(table), std::end(table),
                                    [&](const Entry& entry) { return key == entry.key; });
  return found == std::end(table) ? nullptr : found;
}

DatasetPtr combined(const DatasetTree& tree, const Combination& how, const Surroundings& around) {
  std::vector<DatasetPtr> datasets = open_list(tree, how.key, around);
  if (datasets.size() == 1 && how.may_be_one) return datasets.front();
  adjust(tree, {}, datasets);
  return how.combine(tree, datasets, place_of(tree, how.key, around));
}

void use_all(DatasetOptions& options) {
  options.start = options.end = options.frequency = "";
  options.select.clear();
  options.drop.clear();
}

DatasetPtr read_from(const NamedSource& source, const DatasetTree& tree,
                     const Surroundings& around) {
  DatasetOptions options = tree;
  options.strict = around.strict;
  options.cache_mib = around.cache_mib;
  // Missing dates are filled before others are chosen: then all of the source is opened.
  const bool opens_all = tree.has("fill_missing_dates");
  if (opens_all) use_all(options);
  const DatasetPtr opened = source.open(options, around.open_store);
  if (tree.is_plain()) return opened;
  DatasetTree rest = tree;
  if (!opens_all) use_all(rest);
  return modified(opened, rest, around);
}

bool is_side_by_side(const std::string& key) {
  return key == "zip" || key == "xy" || key == "x";
}

Surroundings inside(const DatasetTree& tree, const Surroundings& around) {
  Surroundings result = around;
  if (tree.has("check_variables_compatibility")) {
    result.checks = read_checks(tree.value("check_variables_compatibility"),
                                tree.path_of("check_variables_compatibility"));
  }
  result.strict = around.strict || tree.strict;
  if (tree.cache_mib != DatasetOptions().cache_mib) result.cache_mib = tree.cache_mib;
  return result;
}

DatasetPtr open_tree(const DatasetTree& tree, const Surroundings& outside) {
  const Surroundings around = inside(tree, outside);
  const std::string key = tree.source_key();
  if (key.empty()) throw ConfigError(tree.path_of("dataset"), "no dataset is named");
  if (is_side_by_side(key)) {
    throw ConfigError(tree.path_of(key), "gives datasets side by side, training takes one",
                      "join them, if their variables differ");
  }
  if (key == "complement") return complement(tree, around);
  const bool is_within = tree.has("dataset");  // instead of the name of a store
  const NamedSource* source = find_entry(kNamedSources, key);
  if (source && !is_within) return read_from(*source, tree, around);
  if (is_within && !tree.value("dataset").is_array()) {
    const std::string path = tree.path_of("dataset");
    return modified(open_tree(parse_dataset(tree.value("dataset"), path), around), tree, around);
  }
  const Combination* combination = find_entry(kCombinations, key);
  AIFS_CHECK(combination, "no dataset is made from ", key);
  return modified(combined(tree, *combination, around), tree, around);
}

Surroundings outermost(const DatasetTree& tree, const StoreOpener& open_store) {
  return {.open_store = open_store, .strict = tree.strict, .cache_mib = tree.cache_mib};
}

}  // namespace

DatasetPtr open_dataset(const DatasetTree& tree, const StoreOpener& open_store) {
  return open_tree(tree, outermost(tree, open_store));
}

std::vector<DatasetPtr> open_side_by_side(const DatasetTree& tree, const StoreOpener& open_store) {
  const std::string key = tree.source_key();
  if (!is_side_by_side(key)) return {open_dataset(tree, open_store)};
  const Surroundings around = inside(tree, outermost(tree, open_store));
  std::vector<DatasetPtr> datasets;
  if (key == "x") {
    for (const char* one : {"x", "y"})
      datasets.push_back(open_tree(parse_dataset(tree.value(one), tree.path_of(one)), around));
  } else {
    datasets = open_list(tree, key, around);
  }
  if (key == "xy" && datasets.size() != 2) {
    throw ConfigError(tree.path_of(key), concat("names ", datasets.size(), " datasets, not two"));
  }
  if (has_options(tree)) {
    throw ConfigError(tree.path, concat("has options beside ", key),
                      "give them to each of the datasets");
  }
  adjust(tree, {}, datasets);
  check_zip(datasets, place_of(tree, key, around));
  return datasets;
}

}  // namespace aifs::data
