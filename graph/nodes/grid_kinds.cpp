// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/grid_kinds.h"

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"

namespace aifs::graph {

namespace {

void bind_resolution(config::Binder& b, int64_t& resolution) {
  b.integer("resolution", resolution, {.min = 1, .max = kMaxHealpixResolution},
            {"12 * 4^resolution pixels, in nested order"});
}

MeshNodes healpix_nodes(const NodePlace& place, int64_t resolution) {
  MeshNodes nodes{.set = place.at_degrees(healpix_coordinates(resolution))};
  nodes.healpix_resolution = resolution;
  return nodes;
}

}  // namespace

MeshNodes DatasetKind::make(const NodePlace& place) const {
  if (!place.cells) {
    throw ConfigError(place.path, concat("the run has no dataset '", place.name, "'"),
                      "nodes of kind \"dataset\" are called as the dataset, \"data\" if there is "
                      "one only");
  }
  if (place.cells->num_points() == 0)
    throw ConfigError(place.path, "the dataset has no coordinates");
  MeshNodes nodes{.set = {place.name,
                          radians_from_degrees(place.cells->lat_deg, place.arithmetic),
                          radians_from_degrees(place.cells->lon_deg, place.arithmetic),
                          {}}};
  nodes.grids = place.grids;
  return nodes;
}

void GaussianGridKind::bind(config::Binder& b) {
  b.text("grid", grid, {"Gaussian grid: octahedral (o96), classic reduced (n320), regular (f32)"});
}

void GaussianGridKind::validate(const std::string& path) const {
  try {
    parse_gaussian_grid(grid);
  } catch (const Error& error) {
    throw ConfigError(path + ".grid", error.what(), error.hint());
  }
}

MeshNodes GaussianGridKind::make(const NodePlace& place) const {
  return {.set = place.at_degrees(gaussian_coordinates(parse_gaussian_grid(grid), place.threads))};
}

std::optional<int64_t> GaussianGridKind::num_nodes() const {
  return parse_gaussian_grid(grid).num_points();
}

void HealpixKind::bind(config::Binder& b) {
  bind_resolution(b, resolution);
}

MeshNodes HealpixKind::make(const NodePlace& place) const {
  return healpix_nodes(place, resolution);
}

void LimitedAreaHealpixKind::bind(config::Binder& b) {
  bind_resolution(b, resolution);
  area.bind(b);
}

MeshNodes LimitedAreaHealpixKind::make(const NodePlace& place) const {
  return limited_to(area.make(place), healpix_nodes(place, resolution));
}

}  // namespace aifs::graph
