// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/tri_nodes.h"

#include "core/check.h"

namespace aifs::graph {

namespace {

struct MeshCoordinates {
  std::vector<float> lat_rad, lon_rad;
  explicit MeshCoordinates(int64_t refinement) {
    icosphere_coordinates(icosphere_points(refinement), lat_rad, lon_rad);
  }
};

// The ordered vertices for which keep(vertex) holds.
template <class Keep>
TriNodes ordered_nodes(int64_t refinement, const MeshCoordinates& mesh, const Keep& keep) {
  TriNodes nodes;
  nodes.refinement = refinement;
  for (const int32_t vertex : canonical_order(mesh.lat_rad, mesh.lon_rad)) {
    const auto v = static_cast<size_t>(vertex);
    if (!keep(v)) continue;
    nodes.lat_rad.push_back(mesh.lat_rad[v]);
    nodes.lon_rad.push_back(mesh.lon_rad[v]);
    nodes.vertex.push_back(vertex);
  }
  return nodes;
}

}  // namespace

TriNodes tri_nodes(int64_t refinement) {
  return ordered_nodes(refinement, MeshCoordinates(refinement), [](size_t) { return true; });
}

TriNodes limited_area_tri_nodes(int64_t refinement, const AreaMask& area) {
  const MeshCoordinates mesh(refinement);
  const auto inside = area.inside(mesh.lat_rad, mesh.lon_rad);
  return ordered_nodes(refinement, mesh, [&](size_t v) { return inside[v] != 0; });
}

TriNodes stretched_tri_nodes(int64_t global_refinement, int64_t local_refinement,
                             const AreaMask& area) {
  if (global_refinement > local_refinement) {
    throw Error(concat("the local refinement ", local_refinement, " is coarser than the global ",
                       global_refinement));
  }
  const MeshCoordinates coarse(global_refinement), fine(local_refinement);
  const auto coarse_inside = area.inside(coarse.lat_rad, coarse.lon_rad);
  const auto fine_inside = area.inside(fine.lat_rad, fine.lon_rad);
  return ordered_nodes(local_refinement, fine, [&](size_t v) {
    return fine_inside[v] != 0 || (v < coarse_inside.size() && coarse_inside[v] == 0);
  });
}

}  // namespace aifs::graph
