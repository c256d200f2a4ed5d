// SPDX-License-Identifier: Apache-2.0
#include "data/combine/dataset_modifiers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/check.h"
#include "core/json_read.h"
#include "core/time.h"
#include "data/combine/cutout.h"
#include "data/combine/dataset_views.h"
#include "data/fields/selection.h"
#include "data/fields/time_axis.h"
#include "data/fields/units.h"
#include "data/sources/mask_file.h"

namespace aifs::data {

namespace {

using config::Json;

bool is_all(const std::vector<int64_t>& indices, int64_t count) {
  if (static_cast<int64_t>(indices.size()) != count) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

int64_t column_of(const DatasetInfo& info, const std::string& name, const std::string& path) {
  const int64_t column = info.find_column(name);
  if (column < 0) {
    throw ConfigError(path, concat("the dataset has no variable '", name, "'"),
                      nearest_names(name, info.variables));
  }
  return column;
}

DatasetPtr fill_missing(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  const auto how = json.get<std::string>();
  if (how == "closest") return with_filled_rows(dataset, MissingFill::kClosest);
  if (how == "interpolate") return with_filled_rows(dataset, MissingFill::kInterpolate);
  throw_not_allowed(path, json, "closest or interpolate");
}

// start, end, frequency, select, drop
DatasetPtr selected(DatasetPtr dataset, const DatasetTree& tree) {
  if (!tree.start.empty() || !tree.end.empty() || !tree.frequency.empty()) {
    const DatasetInfo& info = dataset->info();
    const std::vector<int64_t> rows = select_rows(info.dates_s, info.frequency_s, tree);
    if (!is_all(rows, info.num_rows())) dataset = with_rows(dataset, rows);
  }
  if (!tree.select.empty() || !tree.drop.empty()) {
    const DatasetInfo& info = dataset->info();
    const std::vector<int64_t> columns = select_columns(info.variables, tree);
    if (!is_all(columns, info.num_variables())) dataset = with_columns(dataset, columns);
  }
  return dataset;
}

DatasetPtr reordered(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  const DatasetInfo& info = dataset->info();
  std::vector<std::string> names;
  if (json == Json("sort")) return sorted_by_name(dataset);
  if (json.is_array()) {
    for (const Json& name : json) {
      if (!name.is_string()) throw_not_allowed(path, name, "the name of a variable");
      names.push_back(name.get<std::string>());
    }
  } else if (json.is_object()) {
    std::vector<std::pair<double, std::string>> places;
    for (const auto& [name, place] : json.items()) {
      if (!place.is_number()) throw_not_allowed(concat(path, ".", name), place, "a number");
      places.emplace_back(place.get<double>(), name);
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, name] : places)
      names.push_back(name);
  } else {
    throw_not_allowed(path, json, "sort, a list of all variables, or an object of their places");
  }
  std::vector<int64_t> columns;
  for (const std::string& name : names)
    columns.push_back(column_of(info, name, path));
  const std::set<int64_t> different(columns.begin(), columns.end());
  if (different.size() != columns.size() || columns.size() != info.variables.size()) {
    throw ConfigError(path,
                      concat("names ", different.size(), " of the ", info.variables.size(),
                             " variables: all must be there, once"),
                      "select chooses some of them, in the order in which they are named");
  }
  return with_columns(dataset, columns);
}

DatasetPtr renamed(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  if (!json.is_object()) throw_not_allowed(path, json, "an object of texts");
  std::vector<std::string> names = dataset->info().variables;
  for (const auto& [old_name, new_name] : json.items()) {
    const std::string at = concat(path, ".", old_name);
    if (!new_name.is_string() || new_name.get<std::string>().empty())
      throw_not_allowed(at, new_name, "a name");
    names[static_cast<size_t>(column_of(dataset->info(), old_name, at))] =
        new_name.get<std::string>();
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second)
      throw ConfigError(path, concat("two variables would be called '", name, "'"));
  }
  return with_names(dataset, names);
}

// [a, b], {"scale": a, "offset": b}, or ["unit", "unit"].
UnitMap read_map(const Json& json, const std::string& path) {
  const auto is_pair = [&](bool (Json::*is)() const noexcept) {
    return json.is_array() && json.size() == 2 && (json[0].*is)() && (json[1].*is)();
  };
  double a = 1.0, b = 0.0;
  if (is_pair(&Json::is_number)) {
    a = json[0].get<double>(), b = json[1].get<double>();
  } else if (is_pair(&Json::is_string)) {
    const auto from = json[0].get<std::string>(), to = json[1].get<std::string>();
    const auto map = convert_units(from, to);
    if (!map) {
      for (const std::string& unit : {from, to}) {
        if (!parse_unit(unit))
          throw ConfigError(path, concat("the unit '", unit, "' is not known"),
                            "give scale and offset");
      }
      throw ConfigError(path, concat("'", from, "' and '", to, "' measure different things"));
    }
    a = map->a, b = map->b;
  } else if (json.is_object() && json.size() == 2 && json.contains("scale") &&
             json.contains("offset") && json["scale"].is_number() && json["offset"].is_number()) {
    a = json["scale"].get<double>(), b = json["offset"].get<double>();
  } else {
    throw_not_allowed(path, json, "[scale, offset], an object of scale and offset, or two units");
  }
  if (!(a >= 0.0)) throw ConfigError(path, concat("the scale ", a, " is negative"));
  return {a, b};
}

DatasetPtr rescaled(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  if (!json.is_object()) throw_not_allowed(path, json, "an object of what is done to variables");
  std::vector<UnitMap> maps(dataset->info().variables.size());
  for (const auto& [name, value] : json.items()) {
    const std::string at = concat(path, ".", name);
    maps[static_cast<size_t>(column_of(dataset->info(), name, at))] = read_map(value, at);
  }
  return with_maps(dataset, maps);
}

// Returns what another dataset knows of the variables of a dataset.
DatasetInfo info_of_other(const DatasetInfo& info, const DatasetPtr& other,
                          const std::string& path) {
  std::vector<int64_t> columns;
  for (const std::string& name : info.variables) {
    const int64_t column = other->info().find_column(name);
    if (column < 0) {
      throw ConfigError(path, concat("'", other->info().name, "' has no variable '", name, "'"),
                        nearest_names(name, other->info().variables));
    }
    columns.push_back(column);
  }
  DatasetInfo known = other->info();
  keep_columns(columns, known);
  return known;
}

DatasetPtr with_others_statistics(const DatasetPtr& dataset, const DatasetTree& tree,
                                  const InnerOpener& open) {
  std::optional<Statistics> statistics;
  std::optional<std::map<int64_t, Statistics>> tendencies;
  for (const char* key : {"statistics", "statistics_tendencies"}) {
    if (!tree.has(key)) continue;
    const std::string path = tree.path_of(key);
    DatasetInfo known = info_of_other(dataset->info(), open(tree.value(key), path), path);
    if (std::string(key) == "statistics") statistics = std::move(known.statistics);
    tendencies = std::move(known.tendencies);
  }
  return with_statistics(dataset, statistics, tendencies);
}

// Rows and columns of fields of two dimensions.
std::pair<int64_t, int64_t> field_of(const DatasetPtr& dataset, const std::string& path) {
  const std::vector<int64_t>& shape = dataset->info().field_shape;
  if (shape.size() != 2) {
    throw ConfigError(path,
                      concat("'", dataset->info().name, "' has no rows and columns, but ",
                             dataset->info().num_nodes(), " cells in a list"),
                      "it comes before mask, area, grids and cutout; reduced grids have none");
  }
  return {shape[0], shape[1]};
}

DatasetPtr masked(const DatasetPtr& dataset, const std::vector<bool>& stays,
                  const std::string& path, const std::vector<int64_t>& field_shape = {}) {
  std::vector<int64_t> cells;
  for (size_t n = 0; n < stays.size(); ++n) {
    if (stays[n]) cells.push_back(static_cast<int64_t>(n));
  }
  if (cells.empty()) {
    throw ConfigError(path, concat("no cell of '", dataset->info().name, "' is left"));
  }
  return with_cells(dataset, cells, field_shape);
}

DatasetPtr trimmed(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  std::vector<int64_t> edge;
  for (const Json& one : json.is_array() ? json : Json::array({json, json, json, json})) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() > INT32_MAX) break;
    edge.push_back(one.get<int64_t>());
  }
  if (edge.size() != 4 || (json.is_array() && json.size() != 4))
    throw_not_allowed(path, json, "an integer >= 0, or a list of four");
  const auto [rows, columns] = field_of(dataset, path);
  if (edge[0] + edge[1] >= rows || edge[2] + edge[3] >= columns) {
    throw ConfigError(path, concat("nothing is left of ", rows, " rows and ", columns, " columns"));
  }
  std::vector<bool> stays;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      stays.push_back(row >= edge[0] && row < rows - edge[1] && column >= edge[2] &&
                      column < columns - edge[3]);
    }
  }
  return masked(dataset, stays, path, {rows - edge[0] - edge[1], columns - edge[2] - edge[3]});
}

DatasetPtr thinned(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  const auto step = json.get<int64_t>();
  const auto [rows, columns] = field_of(dataset, path);
  std::vector<bool> stays;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      stays.push_back(row % step == 0 && column % step == 0);
  }
  return masked(dataset, stays, path, {(rows + step - 1) / step, (columns + step - 1) / step});
}

DatasetPtr cropped(const DatasetPtr& dataset, const Json& json, const std::string& path,
                   const InnerOpener& open) {
  Area area;
  const bool is_numbers =
      json.is_array() &&
      std::all_of(json.begin(), json.end(), [](const Json& n) { return n.is_number(); });
  if (is_numbers) {
    if (json.size() != 4) throw_not_allowed(path, json, "[north, west, south, east]");
    area = {json[0].get<double>(), json[1].get<double>(), json[2].get<double>(),
            json[3].get<double>()};
  } else {
    const DatasetPtr other = open(json, path);
    area = bounds_of({other->info().latitudes_deg, other->info().longitudes_deg});
  }
  const DatasetInfo& info = dataset->info();
  return masked(dataset, cells_in_area({info.latitudes_deg, info.longitudes_deg}, area), path);
}

DatasetPtr some_members(const DatasetPtr& dataset, const DatasetTree& tree) {
  std::set<int64_t> members;
  const int64_t count = dataset->info().ensemble_size;
  for (const auto& [key, first] : {std::pair("number", 1), std::pair("numbers", 1),
                                   std::pair("member", 0), std::pair("members", 0)}) {
    if (!tree.has(key)) continue;
    const Json json = tree.value(key);
    for (const Json& number : json.is_array() ? json : Json::array({json})) {
      const std::string path = tree.path_of(key);
      if (!number.is_number_integer())
        throw_not_allowed(path, number, "an integer, or a list of them");
      const int64_t member = number.get<int64_t>() - first;
      if (member < 0 || member >= count) {
        throw ConfigError(path,
                          concat(number.dump(), " is not from ", first, " to ", first + count - 1),
                          concat("'", dataset->info().name, "' has ", count, " members"));
      }
      members.insert(member);
    }
  }
  if (members.empty()) return dataset;
  return with_members(dataset, {members.begin(), members.end()});
}

DatasetPtr with_set_missing(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  const DatasetInfo& info = dataset->info();
  if (!json.is_array()) throw_not_allowed(path, json, "a list of dates, or of their numbers");
  std::vector<int64_t> rows;
  for (const Json& date : json) {
    if (date.is_number_unsigned() &&
        date.get<uint64_t>() < static_cast<uint64_t>(info.num_rows())) {
      rows.push_back(date.get<int64_t>());
      continue;
    }
    if (!date.is_string())
      throw_not_allowed(path, date, concat("a date, or a number below ", info.num_rows()));
    int64_t date_s = 0;
    try {
      date_s = parse_date(date.get<std::string>());
    } catch (const Error& error) {
      throw ConfigError(path, error.what(), error.hint());
    }
    if (const int64_t row = find_row(info.dates_s, {}, date_s); row >= 0) rows.push_back(row);
  }
  if (rows.empty()) {
    throw ConfigError(
        path, "names none of the dates",
        concat("they are from ", format_date(info.dates_s.front()), " to ",
               format_date(info.dates_s.back()), ", every ", format_duration(info.frequency_s)));
  }
  return with_missing(dataset, rows);
}

DatasetPtr interpolated(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  int64_t wanted_s = 0;
  try {
    wanted_s = parse_duration(json.is_string() ? json.get<std::string>() : json.dump());
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
  const int64_t own_s = dataset->info().frequency_s;
  if (wanted_s <= 0 || wanted_s >= own_s || own_s % wanted_s != 0) {
    throw ConfigError(
        path, concat(json.dump(), " is not a part of the frequency, ", format_duration(own_s)));
  }
  return with_rows_between(dataset, own_s / wanted_s);
}

DatasetPtr averaged(const DatasetPtr& dataset, const Json& json, const std::string& path) {
  const auto fits = [&] {
    if (!json.is_array() || json.size() != 3) return false;
    if (json[2] != Json("freq") && json[2] != Json("frequency")) return false;
    return json[0].is_number_integer() && json[1].is_number_integer() &&
           json[0].get<int64_t>() <= 0 && json[1].get<int64_t>() >= 0;
  };
  if (!fits()) throw_not_allowed(path, json, "[steps before <= 0, steps after >= 0, \"freq\"]");
  const int64_t before = -json[0].get<int64_t>(), after = json[1].get<int64_t>();
  if (before > INT32_MAX || after > INT32_MAX || before + after >= dataset->info().num_rows()) {
    throw ConfigError(path, concat("a window of ", before + after + 1, " dates is longer than the ",
                                   dataset->info().num_rows(), " that there are"));
  }
  return with_means(dataset, before, after);
}

}  // namespace

DatasetPtr sorted_by_name(const DatasetPtr& dataset) {
  const std::vector<std::string>& names = dataset->info().variables;
  std::vector<int64_t> columns(names.size());
  std::iota(columns.begin(), columns.end(), int64_t{0});
  std::sort(columns.begin(), columns.end(), [&](int64_t a, int64_t b) {
    return names[static_cast<size_t>(a)] < names[static_cast<size_t>(b)];
  });
  return with_columns(dataset, columns);
}

DatasetPtr apply_options(const DatasetPtr& dataset, const DatasetTree& tree,
                         const InnerOpener& open) {
  DatasetPtr result = dataset;
  const auto apply = [&](const char* key, auto&& function) {
    if (tree.has(key)) result = function(result, tree.value(key), tree.path_of(key));
  };
  apply("fill_missing_dates", fill_missing);
  result = selected(result, tree);
  apply("reorder", reordered);
  apply("rename", renamed);
  apply("rescale", rescaled);
  if (tree.has("statistics") || tree.has("statistics_tendencies"))
    result = with_others_statistics(result, tree, open);
  apply("mask", [](const DatasetPtr& all, const Json& json, const std::string& path) {
    return masked(all, read_mask(json.get<std::string>(), all->info().num_nodes()), path);
  });
  apply("trim_edge", trimmed);
  apply("thinning", thinned);
  apply("area", [&](const DatasetPtr& all, const Json& json, const std::string& path) {
    return cropped(all, json, path, open);
  });
  result = some_members(result, tree);
  apply("set_missing_dates", with_set_missing);
  apply("interpolate_frequency", interpolated);
  apply("rolling_average", averaged);
  return result;
}

bool has_options(const DatasetTree& tree) {
  const bool selects = !tree.start.empty() || !tree.end.empty() || !tree.frequency.empty() ||
                       !tree.select.empty() || !tree.drop.empty();
  const auto is_option = [&](const char* key) { return tree.has(key); };
  const char* kOptions[] = {"fill_missing_dates",
                            "reorder",
                            "rename",
                            "rescale",
                            "statistics",
                            "statistics_tendencies",
                            "mask",
                            "trim_edge",
                            "thinning",
                            "area",
                            "number",
                            "numbers",
                            "member",
                            "members",
                            "set_missing_dates",
                            "interpolate_frequency",
                            "rolling_average"};
  return selects || std::any_of(std::begin(kOptions), std::end(kOptions), is_option);
}

}  // namespace aifs::data
