// SPDX-License-Identifier: Apache-2.0
#include "app/run/analytic_cells.h"

#include <algorithm>

#include "core/check.h"
#include "data/combine/cutout.h"
#include "graph/nodes/gaussian_grid.h"

namespace aifs::app {

namespace {

graph::Coordinates named_grid(const std::string& name, const std::string& path) {
  try {
    return graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

// Rows from north to south, each from west to east, both edges included where the spacing allows.
graph::Coordinates cells_of_region(const data::AnalyticRegion& region) {
  graph::Coordinates cells;
  // The last row and column may miss the edge by rounding.
  constexpr double kRounding = 1e-9;
  const auto steps = [&](double extent_deg) {
    return static_cast<int64_t>(extent_deg / region.spacing_deg + kRounding);
  };
  for (int64_t row = 0; row <= steps(region.north_deg - region.south_deg); ++row) {
    for (int64_t column = 0; column <= steps(region.east_deg - region.west_deg); ++column) {
      cells.lat_deg.push_back(region.north_deg - static_cast<double>(row) * region.spacing_deg);
      cells.lon_deg.push_back(region.west_deg + static_cast<double>(column) * region.spacing_deg);
    }
  }
  return cells;
}

}  // namespace

AnalyticCells analytic_cells(const RunConfig& config) {
  const data::AnalyticOptions& options = config.data.analytic;
  const bool own = !options.grid.empty();
  AnalyticCells all{
      named_grid(own ? options.grid : config.graph.grid, own ? "data.analytic.grid" : "graph.grid"),
      {}};
  if (!options.region.is_given()) return all;
  const char* path = "data.analytic.region";
  data::CutoutOptions cutout;
  if (options.region.max_distance_km > 0.0) cutout.max_distance_km = options.region.max_distance_km;
  const graph::Coordinates globe = std::move(all.places);
  all.places = cells_of_region(options.region);
  const size_t inside = all.places.lat_deg.size();
  if (inside < static_cast<size_t>(cutout.neighbours)) {
    throw ConfigError(path, concat("has ", inside, " cells, which are too few for a cutout"),
                      "choose a smaller spacing, or a larger region");
  }
  const std::vector<bool> stays = data::cells_outside({all.places.lat_deg, all.places.lon_deg},
                                                      {globe.lat_deg, globe.lon_deg}, cutout);
  for (size_t n = 0; n < stays.size(); ++n) {
    if (!stays[n]) continue;
    all.places.lat_deg.push_back(globe.lat_deg[n]);
    all.places.lon_deg.push_back(globe.lon_deg[n]);
  }
  const size_t outside = all.places.lat_deg.size() - inside;
  if (outside == 0) {
    throw ConfigError(path, concat("leaves no cell of the grid \"", options.grid, "\""),
                      "choose a smaller region, or a larger max_distance_km");
  }
  all.grids = {static_cast<int64_t>(inside), static_cast<int64_t>(outside)};
  return all;
}

}  // namespace aifs::app
