// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/tri_kinds.h"

#include "core/check.h"

namespace aifs::graph {

namespace {

constexpr config::Bounds<int64_t> kLevels{.min = 0, .max = kMaxRefinement};

MeshNodes of_mesh(const std::string& name, TriNodes mesh,
                  std::shared_ptr<const AreaMask> area = nullptr) {
  MeshNodes nodes{.set = {name, mesh.lat_rad, mesh.lon_rad, {}}, .area = std::move(area)};
  nodes.tri = std::move(mesh);
  return nodes;
}

}  // namespace

void TriKind::bind(config::Binder& b) {
  b.integer("refinement", level, kLevels,
            {"how often the icosahedron's edges are halved; 10 * 4^refinement + 2 nodes"});
}

MeshNodes TriKind::make(const NodePlace& place) const {
  return of_mesh(place.name, tri_nodes(level));
}

void LimitedAreaTriKind::bind(config::Binder& b) {
  b.integer("refinement", level, kLevels,
            {"how often the icosahedron's edges are halved; nodes outside the area are left out"});
  area.bind(b);
}

MeshNodes LimitedAreaTriKind::make(const NodePlace& place) const {
  auto mask = area.make(place);
  TriNodes mesh = limited_area_tri_nodes(level, *mask);
  return of_mesh(place.name, std::move(mesh), std::move(mask));
}

void StretchedTriKind::bind(config::Binder& b) {
  b.integer("global_refinement", global_level, kLevels, {"refinement outside the area"});
  b.integer("local_refinement", local_level, kLevels,
            {"refinement inside the area, at least global_refinement"});
  area.bind(b);
}

void StretchedTriKind::validate(const std::string& path) const {
  if (local_level >= global_level) return;
  throw ConfigError(
      path + ".local_refinement",
      concat("is ", local_level, ", coarser than the global refinement ", global_level));
}

MeshNodes StretchedTriKind::make(const NodePlace& place) const {
  auto mask = area.make(place);
  TriNodes mesh = stretched_tri_nodes(global_level, local_level, *mask);
  return of_mesh(place.name, std::move(mesh), std::move(mask));
}

}  // namespace aifs::graph
