// SPDX-License-Identifier: Apache-2.0
// Several datasets as one. What has to be alike is checked against the first; ConfigError names the
// place of the combination in the configuration and the two that differ.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/combine/cutout.h"
#include "data/fields/dataset.h"

namespace aifs::data {

// For which variables a difference in kind does not matter.
struct Indifference {
  bool all = false;
  std::set<std::string> names = {};
  bool covers(const std::string& name) const { return all || names.contains(name); }
};
struct VariableChecks {
  Indifference units = {}, process = {}, period = {}, level_type = {};
};

struct CombinationPlace {
  std::string path;  // in the configuration: "data.dataset.join"
  VariableChecks checks = {};
};

// All need two datasets at least.
DatasetPtr join_variables(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place);
DatasetPtr join_dates(const std::vector<DatasetPtr>& datasets, bool fill_gaps,
                      const CombinationPlace& place);
DatasetPtr join_members(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place);
DatasetPtr join_grids(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place);
// Limited areas, and last the grid around them.
DatasetPtr join_cutout(const std::vector<DatasetPtr>& datasets, const CutoutOptions& options,
                       const CombinationPlace& place);
// Variables of `source` that `target` has not, from the nearest cells of its grid.
struct NearestOptions {
  int64_t num_neighbours = 1;
  std::optional<double> max_distance;  // chord on the unit sphere
};
DatasetPtr on_grid_of(const DatasetPtr& target, const DatasetPtr& source,
                      const std::optional<NearestOptions>& nearest, const CombinationPlace& place);
// Checks that datasets may stand side by side: they share dates and variables.
void check_zip(const std::vector<DatasetPtr>& datasets, const CombinationPlace& place);

// Reduces datasets to what they have in common: "select", "start", "end", "frequency".
std::vector<DatasetPtr> adjusted(const std::vector<DatasetPtr>& datasets,
                                 const std::set<std::string>& what, const std::string& path);

}  // namespace aifs::data
