// SPDX-License-Identifier: Apache-2.0
// Edges among the nodes of an icosahedral mesh at several levels of refinement: long edges of the
// coarse levels carry information far, short ones carry detail.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/edge_list.h"
#include "graph/nodes/tri_nodes.h"

namespace aifs::graph {

struct MultiScale {
  int64_t x_hops = 1;           // joins vertices up to this many mesh edges apart
  std::vector<int64_t> levels;  // of refinement, 0 = the icosahedron; not empty
};

// first, first + 1, ..., last.
std::vector<int64_t> level_range(int64_t first, int64_t last);

// One hop: level by level in the order given, each level 60 * 4^level edges in the order of its
// faces, both directions; edges with an end outside the node set are left out. No level may be
// finer than the mesh.
// More hops: every pair of nodes once, sorted by (target, source). Paths use vertices of the node
// set only. Levels finer than the mesh are allowed for a whole sphere: their vertices stand for the
// nearest node.
// Throws Error for an impossible level.
EdgeList multi_scale_edges(const TriNodes& nodes, const MultiScale& options);

}  // namespace aifs::graph
