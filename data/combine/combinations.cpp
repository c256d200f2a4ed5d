// SPDX-License-Identifier: Apache-2.0
#include "data/combine/combinations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/time.h"
#include "data/combine/combined_dataset.h"
#include "data/combine/computed_dataset.h"
#include "data/combine/dataset_views.h"
#include "data/combine/nearest_points.h"
#include "data/fields/units.h"

namespace aifs::data {

namespace {

using Part = CombinedDataset::Part;

// Describes what has to be alike.
struct Alike {
  bool resolution = true, frequency = true, grid = true, variables = true, kinds = true;
  bool dates = true, members = true;
};

std::string pair_text(const DatasetInfo& first, const DatasetInfo& other) {
  return concat("'", first.name, "' and '", other.name, "'");
}

bool nearly_equal(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kRelative = 1e-7, kAbsolute = 1e-8;  // as numpy.allclose is asked
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kAbsolute + kRelative * std::abs(b[i]))) return false;
  }
  return true;
}

bool same_units(const std::string& a, const std::string& b) {
  if (a == b || a.empty() || b.empty()) return true;
  const auto one = parse_unit(a), other = parse_unit(b);
  return one && other && *one == *other;
}

bool same_text(const std::string& a, const std::string& b) {
  return a == b || a.empty() || b.empty();
}

// How a variable of two datasets differs in kind; empty: not at all.
std::string difference(const std::string& name, const VariableKind& a, const VariableKind& b,
                       const VariableChecks& checks) {
  if (!same_units(a.units, b.units) && !checks.units.covers(name))
    return concat("is in ", a.units, " and in ", b.units);
  if (!same_text(a.process, b.process) && !checks.process.covers(name))
    return concat("is of process ", a.process, " and ", b.process);
  if (a.period_s && b.period_s && *a.period_s != *b.period_s && !checks.period.covers(name)) {
    return concat("is over ", format_duration(*a.period_s), " and ", format_duration(*b.period_s));
  }
  if (!same_text(a.level_type, b.level_type) && !checks.level_type.covers(name))
    return concat("is on levels of type ", a.level_type, " and ", b.level_type);
  return "";
}

void check_kinds(const DatasetInfo& first, const DatasetInfo& other,
                 const CombinationPlace& place) {
  if (first.kinds.empty() || other.kinds.empty()) return;
  for (size_t v = 0; v < first.variables.size(); ++v) {
    const std::string& name = first.variables[v];
    const int64_t column = other.find_column(name);
    if (column < 0) continue;
    const std::string text =
        difference(name, first.kinds[v], other.kinds[static_cast<size_t>(column)], place.checks);
    if (text.empty()) continue;
    throw ConfigError(place.path, concat(pair_text(first, other), ": variable '", name, "' ", text),
                      "if that does not matter: check_variables_compatibility");
  }
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 8); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 8 ? concat(text, ", ... (", names.size(), ")") : text;
}

void check_pair(const DatasetInfo& a, const DatasetInfo& b, const Alike& alike,
                const CombinationPlace& place) {
  const auto differ = [&](const std::string& in, const std::string& ours, const std::string& theirs,
                          const std::string& hint = "") {
    throw ConfigError(
        place.path, concat(pair_text(a, b), " differ in ", in, ": ", ours, " and ", theirs), hint);
  };
  const auto or_none = [](const std::string& text) { return text.empty() ? "null" : text; };
  if (alike.resolution && or_none(a.resolution) != or_none(b.resolution))
    differ("resolution", or_none(a.resolution), or_none(b.resolution));
  if (alike.frequency && a.frequency_s != b.frequency_s) {
    differ("frequency", format_duration(a.frequency_s), format_duration(b.frequency_s),
           "\"adjust\": \"frequency\" takes the larger one");
  }
  if (alike.grid && (!nearly_equal(a.latitudes_deg, b.latitudes_deg) ||
                     !nearly_equal(a.longitudes_deg, b.longitudes_deg))) {
    differ("cells", concat(a.num_nodes()), concat(b.num_nodes(), " at other places"));
  }
  if (alike.dates && (a.num_rows() != b.num_rows() || a.dates_s.front() != b.dates_s.front() ||
                      a.dates_s.back() != b.dates_s.back())) {
    const auto dates = [](const DatasetInfo& info) {
      return concat(info.num_rows(), " from ", format_date(info.dates_s.front()), " to ",
                    format_date(info.dates_s.back()));
    };
    differ("dates", dates(a), dates(b), "\"adjust\": \"dates\" takes what they have in common");
  }
  if (alike.variables && a.variables != b.variables) {
    differ("variables", list_text(a.variables), list_text(b.variables),
           "\"adjust\": \"variables\" takes what they have in common; reorder sorts them");
  }
  if (alike.kinds) check_kinds(a, b, place);
  if (alike.members && a.ensemble_size != b.ensemble_size)
    differ("members", concat(a.ensemble_size), concat(b.ensemble_size));
}

void check_alike(const std::vector<DatasetPtr>& datasets, const Alike& alike,
                 const CombinationPlace& place) {
  if (datasets.size() < 2) {
    throw ConfigError(place.path, concat("combines ", datasets.size(), " dataset"),
                      "name two at least");
  }
  for (const DatasetPtr& other : datasets)
    check_pair(datasets.front()->info(), other->info(), alike, place);
}

std::string combined_name(const char* what, const std::vector<DatasetPtr>& datasets) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(datasets.size(), 4); ++i)
    text += (i == 0 ? "" : ", ") + datasets[i]->info().name;
  return concat(what, "(", text, datasets.size() > 4 ? ", ...)" : ")");
}

std::vector<int64_t> union_of_missing(const std::vector<DatasetPtr>& datasets) {
  std::set<int64_t> missing;
  for (const DatasetPtr& dataset : datasets)
    missing.insert(dataset->info().missing_rows.begin(), dataset->info().missing_rows.end());
  return {missing.begin(), missing.end()};
}

void append_column(const Statistics& from, size_t column, Statistics& to) {
  to.mean.push_back(from.mean[column]);
  to.stdev.push_back(from.stdev[column]);
  to.minimum.push_back(from.minimum[column]);
  to.maximum.push_back(from.maximum[column]);
}

// Which dataset gives a variable of a join.
struct Giver {
  size_t dataset = 0, column = 0;
};

std::vector<int64_t> true_indices(const std::vector<bool>& flags) {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) indices.push_back(static_cast<int64_t>(i));
  }
  return indices;
}

Cells cells_of(const DatasetPtr& dataset) {
  return {dataset->info().latitudes_deg, dataset->info().longitudes_deg};
}

// Grids one after the other; of each only some cells, if they are given.
DatasetPtr grids_of(const char* what, const std::vector<DatasetPtr>& datasets) {
  DatasetInfo info = datasets.front()->info();
  info.name = combined_name(what, datasets);
  info.missing_rows = union_of_missing(datasets);
  info.latitudes_deg.clear();
  info.longitudes_deg.clear();
  info.grids.clear();
  std::vector<Part> parts;
  for (const DatasetPtr& dataset : datasets) {
    const DatasetInfo& one = dataset->info();
    parts.push_back({.source = dataset, .first_cell = info.num_nodes()});
    info.latitudes_deg.insert(info.latitudes_deg.end(), one.latitudes_deg.begin(),
                              one.latitudes_deg.end());
    info.longitudes_deg.insert(info.longitudes_deg.end(), one.longitudes_deg.begin(),
                               one.longitudes_deg.end());
    if (one.grids.empty()) info.grids.push_back(one.num_nodes());
    info.grids.insert(info.grids.end(), one.grids.begin(), one.grids.end());
  }
  info.field_shape = {info.num_nodes()};
  return std::make_shared<CombinedDataset>(std::move(info), std::move(parts));
}

}  // namespace

DatasetPtr join_variables(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place) {
  check_alike(datasets, {.variables = false, .kinds = false}, place);
  DatasetInfo info = datasets.front()->info();
  info.name = combined_name("join", datasets);
  info.missing_rows = union_of_missing(datasets);
  info.variables.clear();
  std::vector<Giver> givers;  // the last one of each name, at the place of the first
  std::vector<Part> parts;
  for (size_t d = 0; d < datasets.size(); ++d) {
    const DatasetInfo& one = datasets[d]->info();
    parts.push_back({.source = datasets[d]});
    parts.back().columns.assign(static_cast<size_t>(one.num_variables()), -1);
    for (size_t v = 0; v < one.variables.size(); ++v) {
      const int64_t known = info.find_column(one.variables[v]);
      if (known >= 0) {
        givers[static_cast<size_t>(known)] = {d, v};
      } else {
        info.variables.push_back(one.variables[v]);
        givers.push_back({d, v});
      }
    }
    std::erase_if(info.tendencies,
                  [&](const auto& item) { return !one.tendencies.contains(item.first); });
  }
  info.statistics = {};
  for (auto& [difference_s, statistics] : info.tendencies)
    statistics = {};
  info.kinds.clear();
  info.constant_fields.clear();
  for (size_t c = 0; c < givers.size(); ++c) {
    const DatasetInfo& one = datasets[givers[c].dataset]->info();
    parts[givers[c].dataset].columns[givers[c].column] = static_cast<int64_t>(c);
    append_column(one.statistics, givers[c].column, info.statistics);
    for (auto& [difference_s, statistics] : info.tendencies)
      append_column(one.tendencies.at(difference_s), givers[c].column, statistics);
    info.kinds.push_back(one.kinds.empty() ? VariableKind() : one.kinds[givers[c].column]);
    if (std::count(one.constant_fields.begin(), one.constant_fields.end(), info.variables[c]) > 0)
      info.constant_fields.push_back(info.variables[c]);
  }
  return std::make_shared<CombinedDataset>(std::move(info), std::move(parts));
}

DatasetPtr join_dates(const std::vector<DatasetPtr>& datasets, bool fill_gaps,
                      const CombinationPlace& place) {
  check_alike(datasets, {.dates = false}, place);
  DatasetInfo info = datasets.front()->info();
  info.name = combined_name("concat", datasets);
  info.dates_s.clear();
  info.missing_rows.clear();
  std::vector<int64_t> first_rows;
  const int64_t step_s = info.frequency_s;
  for (const DatasetPtr& dataset : datasets) {
    const DatasetInfo& one = dataset->info();
    if (!info.dates_s.empty()) {
      const int64_t gap_s = one.dates_s.front() - info.dates_s.back();
      const std::string ends = concat(format_date(info.dates_s.back()), " is followed by ",
                                      format_date(one.dates_s.front()), " of '", one.name, "'");
      if (gap_s <= 0 || gap_s % step_s != 0) {
        throw ConfigError(place.path, concat("the dates do not follow each other: ", ends),
                          "concat wants datasets in the order of their dates, without overlap");
      }
      if (gap_s != step_s && !fill_gaps) {
        throw ConfigError(place.path, concat("there is a gap between the dates: ", ends),
                          "\"fill_missing_gaps\": true makes missing dates of it");
      }
      while (one.dates_s.front() - info.dates_s.back() > step_s) {
        info.missing_rows.push_back(info.num_rows());
        info.dates_s.push_back(info.dates_s.back() + step_s);
      }
    }
    first_rows.push_back(info.num_rows());
    for (const int64_t row : one.missing_rows)
      info.missing_rows.push_back(first_rows.back() + row);
    info.dates_s.insert(info.dates_s.end(), one.dates_s.begin(), one.dates_s.end());
  }
  std::vector<Part> parts;
  for (size_t d = 0; d < datasets.size(); ++d) {
    Part& part = parts.emplace_back(Part{.source = datasets[d]});
    part.rows.assign(info.dates_s.size(), -1);
    for (int64_t row = 0; row < datasets[d]->info().num_rows(); ++row)
      part.rows[static_cast<size_t>(first_rows[d] + row)] = row;
  }
  return std::make_shared<CombinedDataset>(std::move(info), std::move(parts));
}

DatasetPtr join_members(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place) {
  check_alike(datasets, {.members = false}, place);
  DatasetInfo info = datasets.front()->info();
  info.name = combined_name("ensemble", datasets);
  info.missing_rows = union_of_missing(datasets);
  info.ensemble_size = 0;
  std::vector<Part> parts;
  for (const DatasetPtr& dataset : datasets) {
    Part& part = parts.emplace_back(Part{.source = dataset});
    for (int64_t member = 0; member < dataset->info().ensemble_size; ++member)
      part.members.push_back(info.ensemble_size++);
  }
  return std::make_shared<CombinedDataset>(std::move(info), std::move(parts));
}

DatasetPtr join_grids(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place) {
  check_alike(datasets, {.resolution = false, .grid = false}, place);
  return grids_of("grids", datasets);
}

DatasetPtr join_cutout(const std::vector<DatasetPtr>& datasets, const CutoutOptions& options,
                       const CombinationPlace& place) {
  check_alike(datasets, {.resolution = false, .grid = false}, place);
  std::vector<DatasetPtr> kept;
  for (size_t d = 0; d < datasets.size(); ++d) {
    const bool is_globe = d + 1 == datasets.size();
    if (!is_globe && datasets[d]->info().num_nodes() < options.neighbours) {
      throw ConfigError(
          place.path,
          concat("'", datasets[d]->info().name, "' has ", datasets[d]->info().num_nodes(),
                 " cells, fewer than the ", options.neighbours, " neighbours that are looked at"));
    }
    std::vector<bool> stays(cells_of(datasets[d]).size(), true);
    for (size_t inner = 0; inner < d; ++inner) {
      if (!is_globe && !grids_meet(cells_of(datasets[inner]), cells_of(datasets[d]))) continue;
      const std::vector<bool> outside =
          cells_outside(cells_of(datasets[inner]), cells_of(datasets[d]), options);
      for (size_t n = 0; n < stays.size(); ++n)
        stays[n] = stays[n] && outside[n];
    }
    const std::vector<int64_t> cells = true_indices(stays);
    if (cells.empty()) {
      throw ConfigError(place.path, concat("no cell of '", datasets[d]->info().name, "' is left"),
                        "leave it out, or give it a smaller area");
    }
    kept.push_back(cells.size() == stays.size() ? datasets[d] : with_cells(datasets[d], cells));
  }
  return grids_of("cutout", kept);
}

namespace {

// Returns for each point the nearest cells of a dataset, and what they weigh.
CellMix nearest_cells(const DatasetInfo& from, const DatasetInfo& wanted,
                      const NearestOptions& nearest, const CombinationPlace& place) {
  const auto k = static_cast<size_t>(nearest.num_neighbours);
  const double limit = nearest.max_distance.value_or(std::numeric_limits<double>::infinity());
  const NearestPoints tree(unit_vectors(from.latitudes_deg, from.longitudes_deg));
  CellMix mix{.num_neighbours = nearest.num_neighbours};
  for (const Point& point : unit_vectors(wanted.latitudes_deg, wanted.longitudes_deg)) {
    const auto found = tree.query(point, k, limit * limit);
    if (found.size() < k && k > 1) {
      throw ConfigError(place.path,
                        concat("a cell of '", wanted.name, "' has only ", found.size(), " of ", k,
                               " neighbours in '", from.name, "'"),
                        "give a larger max_distance, or k = 1");
    }
    std::vector<float> weights;
    float sum = 0.0f;
    for (size_t i = 0; i < k; ++i) {
      mix.cells.push_back(i < found.size() ? found[i].index : -1);
      if (k == 1) break;
      weights.push_back(static_cast<float>(1.0 / (std::sqrt(found[i].distance2) + 1e-8)));
      sum += weights.back();
    }
    for (const float weight : weights)
      mix.weights.push_back(weight / sum);
  }
  return mix;
}

// The variables and dates that all datasets have, in ascending order, and the largest frequency.
struct Common {
  std::set<std::string> variables;
  std::set<int64_t> dates_s;
  int64_t frequency_s = 0;
};

Common common_to(const std::vector<DatasetPtr>& datasets) {
  const DatasetInfo& first = datasets.front()->info();
  Common common{.variables = {first.variables.begin(), first.variables.end()},
                .dates_s = {first.dates_s.begin(), first.dates_s.end()}};
  for (const DatasetPtr& dataset : datasets) {
    const DatasetInfo& info = dataset->info();
    std::erase_if(common.variables, [&](const auto& name) { return info.find_column(name) < 0; });
    std::erase_if(common.dates_s, [&](int64_t date_s) {
      return !std::binary_search(info.dates_s.begin(), info.dates_s.end(), date_s);
    });
    common.frequency_s = std::max(common.frequency_s, info.frequency_s);
  }
  return common;
}

// Cuts off what is before the first or after the last of some dates.
DatasetPtr within_dates(const DatasetPtr& dataset, const std::set<int64_t>& limits_s,
                        bool cuts_start, bool cuts_end) {
  const std::vector<int64_t>& dates_s = dataset->info().dates_s;
  std::vector<int64_t> rows;
  for (size_t row = 0; row < dates_s.size(); ++row) {
    const bool is_early = cuts_start && dates_s[row] < *limits_s.begin();
    const bool is_late = cuts_end && dates_s[row] > *limits_s.rbegin();
    if (!is_early && !is_late) rows.push_back(static_cast<int64_t>(row));
  }
  return rows.size() < dates_s.size() ? with_rows(dataset, rows) : dataset;
}

DatasetPtr at_frequency(const DatasetPtr& dataset, int64_t frequency_s, const std::string& path) {
  const int64_t own_s = dataset->info().frequency_s;
  if (own_s == frequency_s) return dataset;
  if (frequency_s % own_s != 0) {
    throw ConfigError(
        path, concat("the frequency of '", dataset->info().name, "', ", format_duration(own_s),
                     ", does not divide ", format_duration(frequency_s)));
  }
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < dataset->info().num_rows(); row += frequency_s / own_s)
    rows.push_back(row);
  return with_rows(dataset, rows);
}

DatasetPtr with_variables(const DatasetPtr& dataset, const std::set<std::string>& names) {
  if (static_cast<size_t>(dataset->info().num_variables()) == names.size()) return dataset;
  std::vector<int64_t> columns;
  for (const std::string& name : names)
    columns.push_back(dataset->info().column(name));
  return with_columns(dataset, columns);
}

}  // namespace

DatasetPtr on_grid_of(const DatasetPtr& target, const DatasetPtr& source,
                      const std::optional<NearestOptions>& nearest, const CombinationPlace& place) {
  const DatasetInfo& wanted = target->info();
  std::vector<int64_t> columns;
  for (int64_t v = 0; v < source->info().num_variables(); ++v) {
    if (wanted.find_column(source->info().variables[static_cast<size_t>(v)]) < 0)
      columns.push_back(v);
  }
  if (columns.empty()) {
    throw ConfigError(place.path, concat("'", source->info().name, "' has no variable that '",
                                         wanted.name, "' has not"));
  }
  const DatasetPtr added = with_columns(source, columns);
  const bool is_nearest = nearest.has_value();
  check_alike({target, added},
              {.resolution = !is_nearest, .grid = !is_nearest, .variables = false, .kinds = false},
              place);
  if (!is_nearest) return added;

  const DatasetInfo& from = added->info();
  DatasetInfo info = from;
  info.latitudes_deg = wanted.latitudes_deg;
  info.longitudes_deg = wanted.longitudes_deg;
  info.field_shape = wanted.field_shape;
  info.grids = wanted.grids;
  info.resolution = wanted.resolution;
  return mix_cells(added, std::move(info), nearest_cells(from, wanted, *nearest, place));
}

void check_zip(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place) {
  check_alike(datasets, {.resolution = false, .grid = false, .variables = false, .members = false},
              place);
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  for (const DatasetPtr& other : datasets) {
    if (sorted(other->info().variables) == sorted(datasets.front()->info().variables)) continue;
    throw ConfigError(place.path, concat(pair_text(datasets.front()->info(), other->info()),
                                         " differ in variables"));
  }
}

std::vector<DatasetPtr> adjusted(const std::vector<DatasetPtr>& datasets,
                                 const std::set<std::string>& what, const std::string& path) {
  const Common common = common_to(datasets);
  if (what.contains("select") && common.variables.empty())
    throw ConfigError(path, "the datasets have no variable in common");
  if ((what.contains("start") || what.contains("end")) && common.dates_s.empty())
    throw ConfigError(path, "the datasets have no date in common");
  std::vector<DatasetPtr> all;
  for (DatasetPtr dataset : datasets) {
    dataset = within_dates(dataset, common.dates_s, what.contains("start"), what.contains("end"));
    if (what.contains("frequency")) dataset = at_frequency(dataset, common.frequency_s, path);
    if (what.contains("select")) dataset = with_variables(dataset, common.variables);
    all.push_back(dataset);
  }
  return all;
}

}  // namespace aifs::data
