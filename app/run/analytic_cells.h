// SPDX-License-Identifier: Apache-2.0
// Places the cells of the analytic dataset (data.kind "analytic"): on a Gaussian grid, or on finer
// cells of a region and what it leaves of the grid.
#pragma once

#include <cstdint>
#include <vector>

#include "app/run/run_config.h"
#include "graph/base/geometry.h"

namespace aifs::app {

struct AnalyticCells {
  graph::Coordinates places;
  std::vector<int64_t> grids;  // cells of the region and of the rest; empty: one grid
};

// The cells of data.analytic.grid, else of graph.grid, with data.analytic.region laid over them as
// the option "cutout" of datasets does (data/combine/cutout.h). Throws ConfigError for a name that
// is none, and a region of fewer cells than a cutout looks at or of all of the globe.
AnalyticCells analytic_cells(const RunConfig& config);

}  // namespace aifs::app
