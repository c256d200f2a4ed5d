// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::data {

namespace {

using config::Json;

enum class ValueKind { kDataset, kDatasets, kBoolean, kCount, kNumber, kText, kAny, kRefused };

struct Key {
  const char* key;
  ValueKind kind;
  const char* belongs_to;  // the key that it needs beside it; empty: none
  const char* type;        // for people
  const char* text;
};

constexpr const char* kOneDataset = "a dataset";
constexpr const char* kManyDatasets = "list of datasets";
// Keys that say what data there are.
constexpr std::array<const char*, 11> kSources{"dataset",  "datasets", "join",   "concat",
                                               "ensemble", "grids",    "cutout", "complement",
                                               "zip",      "xy",       "x"};
// Combinations whose members may be adjusted to each other.
constexpr const char* kCombination = "a combination";

// In the order in which the options of one object are applied.
constexpr Key kKeys[] = {
    {"datasets", ValueKind::kDatasets, "", kManyDatasets,
     "the same as a list in place of dataset: joined if all have the same first and last date, "
     "else one after the other"},
    {"join", ValueKind::kDatasets, "", kManyDatasets,
     "the variables of all; of one that several have, the last one's values at the first one's "
     "place"},
    {"concat", ValueKind::kDatasets, "", kManyDatasets,
     "the dates of all, which follow each other; statistics of the first"},
    {"fill_missing_gaps", ValueKind::kBoolean, "concat", "true or false",
     "gaps between the dates of concatenated datasets become missing dates"},
    {"ensemble", ValueKind::kDatasets, "", kManyDatasets, "the members of all"},
    {"grids", ValueKind::kDatasets, "", kManyDatasets,
     "the cells of all, one grid after the other; statistics of the first"},
    {"cutout", ValueKind::kDatasets, "", kManyDatasets,
     "limited areas, and last the grid around them, whose cells give way to theirs, as do those "
     "of a limited area to the ones before; statistics of the first"},
    {"min_distance_km", ValueKind::kNumber, "cutout", "number >= 0",
     "outer cells as close to an inner one are left out, too; without it the smallest distance of "
     "two outer cells near the inner ones"},
    {"max_distance_km", ValueKind::kNumber, "cutout", "number >= 0",
     "outer cells further from every inner one are left out"},
    {"cropping_distance", ValueKind::kNumber, "cutout", "number >= 0",
     "degrees around the inner cells within which outer ones are tested; 2 without it"},
    {"neighbours", ValueKind::kCount, "cutout", "integer >= 1",
     "inner cells that are looked at around an outer one; 5 without it"},
    {"complement", ValueKind::kDataset, "", kOneDataset,
     "gets the variables of `source` that it has not, on its grid; variables are sorted by name"},
    {"source", ValueKind::kDataset, "complement", kOneDataset, "what gives the variables"},
    {"interpolation", ValueKind::kText, "complement", "none | nearest",
     "none: both have the same grid; nearest: the value of the nearest cell"},
    {"k", ValueKind::kCount, "complement", "integer >= 1",
     "nearest cells whose mean is taken, weighted by the inverse distance; 1 without it"},
    {"max_distance", ValueKind::kNumber, "complement", "number >= 0",
     "chord on the unit sphere beyond which there is no nearest cell, but NaN"},
    {"zip", ValueKind::kDatasets, "", kManyDatasets,
     "datasets side by side that share their dates: no data to train one network on, refused by "
     "a run"},
    {"xy", ValueKind::kDatasets, "", kManyDatasets, "the same, of two"},
    {"x", ValueKind::kDataset, "y", kOneDataset, "the first of two that are side by side"},
    {"y", ValueKind::kDataset, "x", kOneDataset, "the second of them"},
    {"adjust", ValueKind::kAny, kCombination,
     "all | dates | variables | select | start | end | "
     "frequency, or a list of them",
     "what the members of a combination are reduced to, so that they fit: the variables that all "
     "have, sorted by name, the first and last of the dates that all have, the largest frequency"},
    {"check_variables_compatibility", ValueKind::kAny, "",
     "object of ignore_units, "
     "ignore_time_processing, ignore_processing_period, ignore_type_of_level, each true, a name "
     "or a list of names",
     "differences between the variables of combined datasets that do not matter, here and within"},
    {"fill_missing_dates", ValueKind::kText, "", "closest | interpolate",
     "values of missing dates: those of the closest date that is there, the later of two, or "
     "between the two around it"},
    {"reorder", ValueKind::kAny, "", "sort, a list of all variables, or an object of their places",
     "order of the variables, after select and drop"},
    {"rename", ValueKind::kAny, "", "object of texts", "new names, after reorder: old to new"},
    {"rescale", ValueKind::kAny, "",
     "object of [scale, offset], {\"scale\": .., \"offset\": ..} or [\"unit\", \"unit\"]",
     "what is done to values of variables, after rename, and to their statistics: scale * value + "
     "offset, or from one unit to another"},
    {"statistics", ValueKind::kDataset, "", kOneDataset,
     "whose statistics are taken, and tendencies unless those are named; must have all variables"},
    {"statistics_tendencies", ValueKind::kDataset, "", kOneDataset,
     "whose statistics of tendencies are taken"},
    {"mask", ValueKind::kText, "", "path", "file .npy of booleans, one per cell: true stays"},
    {"trim_edge", ValueKind::kAny, "", "integer >= 0, or a list of four",
     "rows and columns cut off a field: [first rows, last rows, first columns, last columns]"},
    {"thinning", ValueKind::kCount, "", "integer >= 1",
     "every n-th row and column of a field of two dimensions"},
    {"method", ValueKind::kText, "thinning", "every-nth",
     "means nothing for fields on a grid, as in Anemoi"},
    {"area", ValueKind::kDataset, "", "[north, west, south, east] in degrees, or a dataset",
     "cells within a rectangle, or within the bounds of another dataset"},
    {"number", ValueKind::kAny, "", "integer, or a list", "members that are used, from 1 on"},
    {"numbers", ValueKind::kAny, "", "integer, or a list", "the same as number"},
    {"member", ValueKind::kAny, "", "integer, or a list", "members that are used, from 0 on"},
    {"members", ValueKind::kAny, "", "integer, or a list", "the same as member"},
    {"set_missing_dates", ValueKind::kAny, "", "list of dates or of their numbers, from 0 on",
     "dates that count as missing"},
    {"skip_missing_dates", ValueKind::kBoolean, "", "false",
     "true is refused: training leaves out samples with a missing date by itself"},
    {"expected_access", ValueKind::kAny, "skip_missing_dates", "integer", "of skip_missing_dates"},
    {"interpolate_frequency", ValueKind::kText, "", "duration such as \"3h\"",
     "dates in between, linear in time"},
    {"rolling_average", ValueKind::kAny, "", "[steps before <= 0, steps after >= 0, \"freq\"]",
     "means over neighbouring dates, of what is not NaN"},
    {"name", ValueKind::kText, "", "text", "for people; used nowhere"},
    {"shuffle", ValueKind::kRefused, "", "-",
     "refused: training draws its samples in random order by itself"},
    {"merge", ValueKind::kRefused, "", "-", "refused: cannot be opened in Anemoi either"},
    {"chain", ValueKind::kRefused, "", "-",
     "refused: datasets without common dates cannot be trained on; name them in concat"},
    {"interpolate_variables", ValueKind::kRefused, "", "-",
     "refused: cannot be opened in Anemoi either; data.imputer fills NaN"},
    {"synthetic", ValueKind::kRefused, "", "-",
     "refused: data.kind \"analytic\" makes data without files"}};

const Key* find_key(const std::string& name) {
  const auto* found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const Key& key) { return name == key.key; });
  return found == std::end(kKeys) ? nullptr : found;
}

// Checks that a value is one of its kind, as far as can be said without the datasets.
void check_value(const Key& key, const Json& json, const std::string& path) {
  bool fits = true;
  switch (key.kind) {
    case ValueKind::kRefused:
      throw ConfigError(path, key.text);
    case ValueKind::kDataset:
    case ValueKind::kAny:
      break;
    case ValueKind::kDatasets:
      fits = json.is_array() && !json.empty();
      break;
    case ValueKind::kBoolean:
      fits = json.is_boolean();
      break;
    case ValueKind::kCount:
      fits = json.is_number_unsigned() && json.get<uint64_t>() > 0 &&
             json.get<uint64_t>() <= INT32_MAX;
      break;
    case ValueKind::kNumber:
      fits = json.is_number() && json.get<double>() >= 0.0;
      break;
    case ValueKind::kText:
      fits = json.is_string() || (path.ends_with("frequency") && json.is_number_integer());
      break;
  }
  if (!fits) throw_not_allowed(path, json, key.type);
}

bool is_numbers(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& one) { return one.is_number(); });
}

// Calls visit(json, path) for all datasets that stand directly in a tree.
template <class Visit>
void for_each_dataset(const DatasetTree& tree, Visit&& visit) {
  const auto visit_list = [&](const Json& list, const std::string& path) {
    for (size_t i = 0; i < list.size(); ++i)
      visit(list[i], concat(path, ".", i));
  };
  if (tree.has("dataset")) {
    const Json nested = tree.value("dataset");
    if (nested.is_array())
      visit_list(nested, tree.path_of("dataset"));
    else
      visit(nested, tree.path_of("dataset"));
  }
  for (const Key& key : kKeys) {
    if (!tree.has(key.key)) continue;
    const Json json = tree.value(key.key);
    const bool is_area = std::string(key.key) == "area";
    if (key.kind == ValueKind::kDatasets) visit_list(json, tree.path_of(key.key));
    if (key.kind == ValueKind::kDataset && !(is_area && is_numbers(json)))
      visit(json, tree.path_of(key.key));
  }
}

// The key takes any JSON; what it must be like is checked by the tree it belongs to.
void bind_value(config::Binder& b, const Key& key, std::map<std::string, std::string>& values) {
  const bool may_hold_paths = key.kind == ValueKind::kDataset || key.kind == ValueKind::kDatasets ||
                              std::string(key.key) == "mask";
  const std::string name = key.key;
  b.fields().push_back(
      {.key = name,
       .doc = {key.text},
       .kind = may_hold_paths ? config::Field::Kind::kPath : config::Field::Kind::kValue,
       .type = key.type,
       .read =
           [&values, &key, name](const Json& json, const std::string& path,
                                 const config::ReadContext&) {
             check_value(key, json, path);
             values[name] = json.dump();
           },
       .write =
           [&values, name] {
             const auto found = values.find(name);
             return found == values.end() ? Json() : Json::parse(found->second);
           },
       .schema = [] { return Json::object(); }});
}

}  // namespace

void DatasetTree::bind(config::Binder& b) {
  DatasetOptions::bind(b);
  config::Field& field = b.fields().front();
  field.type = "path, list of datasets, or an object like this one";
  field.doc.text =
      "folder of an Anemoi dataset, usually named *.zarr, or zip file of one; or datasets within";
  field.read = [this, read = field.read](const Json& json, const std::string& at,
                                         const config::ReadContext& context) {
    values.erase("dataset");
    dataset.clear();
    if (json.is_array() || json.is_object()) {
      values["dataset"] = json.dump();
    } else {
      read(json, at, context);
    }
  };
  field.write = [this] { return has("dataset") ? value("dataset") : Json(dataset); };
  field.schema = [] { return Json{{"type", Json::array({"string", "array", "object"})}}; };
  for (const Key& key : kKeys)
    bind_value(b, key, values);
}

Json DatasetTree::value(const std::string& key) const {
  const auto found = values.find(key);
  return found == values.end() ? Json() : Json::parse(found->second);
}

std::string DatasetTree::source_key() const {
  if (!dataset.empty()) return "dataset";
  if (!netcdf.files.empty()) return "netcdf";
  for (const char* key : kSources) {
    if (has(key)) return key;
  }
  return "";
}

void DatasetTree::validate(const std::string& at) const {
  DatasetOptions::validate(at);
  const auto where = [&](const std::string& key) { return concat(at, ".", key); };
  const std::string source = source_key();
  for (const char* key : kSources) {
    if (has(key) && key != source) {
      throw ConfigError(where(key),
                        concat("stands beside ", source,
                               ": one of them says what the "
                               "data are"),
                        concat("put one into the other: {\"", source, "\": .., ...}"));
    }
  }
  const bool is_combination =
      source != "dataset" && source != "datasets" && source != "netcdf" && !source.empty();
  for (const auto& [name, text] : values) {
    const Key* key = find_key(name);
    const std::string needs = key ? key->belongs_to : "";
    const bool is_alone = needs == kCombination ? !is_combination : !needs.empty() && !has(needs);
    if (is_alone) throw ConfigError(where(name), concat("means nothing without ", needs));
  }
  if (has("complement") && !has("source")) {
    throw ConfigError(where("source"), "is not given: what has the other variables?");
  }
  if (!frequency.empty() && has("interpolate_frequency")) {
    throw ConfigError(where("interpolate_frequency"), "cannot be used together with frequency",
                      "put one dataset into another: {\"dataset\": {.., \"frequency\": ..}, "
                      "\"interpolate_frequency\": ..}");
  }
  if (has("skip_missing_dates") && value("skip_missing_dates") == true) {
    throw ConfigError(where("skip_missing_dates"), find_key("skip_missing_dates")->text,
                      "leave it out, and expected_access with it");
  }
  DatasetTree placed = *this;
  placed.path = at;
  for_each_dataset(placed, [](const Json& json, const std::string& inside) {
    (void)parse_dataset(json, inside);
  });
}

DatasetTree parse_dataset(const Json& json, const std::string& path) {
  DatasetTree tree;
  if (json.is_object()) {
    config::read(tree, json, path, {});
    if (tree.source_key().empty()) {
      throw ConfigError(path, "names no dataset",
                        "give it a key dataset, netcdf, join, concat, ensemble, grids, cutout or "
                        "complement");
    }
  } else if (json.is_array() && !json.empty()) {
    config::read(tree, Json{{"dataset", json}}, path, {});
  } else if (json.is_string() && !json.get<std::string>().empty()) {
    tree.dataset = json.get<std::string>();
  } else {
    throw_not_allowed(path, json,
                      "the name of a dataset, a list of datasets, or an object with options");
  }
  tree.path = path;
  tree.start_path = tree.path_of("start");
  tree.end_path = tree.path_of("end");
  return tree;
}

DatasetTree put_inside_another(DatasetTree tree) {
  const std::string path = tree.path;
  DatasetTree outer;
  outer.values["dataset"] = config::write_object(config::fields_of(tree)).dump();
  outer.path = path;
  outer.strict = tree.strict;
  outer.cache_mib = tree.cache_mib;
  return outer;
}

std::vector<std::string> store_names(const DatasetTree& tree) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  if (!tree.dataset.empty()) add(tree.dataset);
  for_each_dataset(tree, [&](const Json& json, const std::string& path) {
    for (const std::string& name : store_names(parse_dataset(json, path)))
      add(name);
  });
  return names;
}

}  // namespace aifs::data
