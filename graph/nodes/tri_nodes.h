// SPDX-License-Identifier: Apache-2.0
// Node sets made of the vertices of a refined icosahedron, north to south (canonical_order()):
// the whole sphere, a limited area, or coarse everywhere and fine in an area.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/nodes/area_mask.h"
#include "graph/nodes/icosphere.h"

namespace aifs::graph {

struct TriNodes {
  int64_t refinement = 0;               // of the mesh that `vertex` counts in
  std::vector<float> lat_rad, lon_rad;  // (N)
  std::vector<int32_t> vertex;          // (N) mesh vertex of each node

  int64_t num_nodes() const { return static_cast<int64_t>(vertex.size()); }
};

TriNodes tri_nodes(int64_t refinement);

// The nodes of tri_nodes(refinement) inside the area, in their order.
TriNodes limited_area_tri_nodes(int64_t refinement, const AreaMask& area);

// Vertices of the local refinement inside the area, of the global one (at their global coordinates)
// outside. Positions are those of the local refinement, which must not be the coarser one.
TriNodes stretched_tri_nodes(int64_t global_refinement, int64_t local_refinement,
                             const AreaMask& area);

}  // namespace aifs::graph
