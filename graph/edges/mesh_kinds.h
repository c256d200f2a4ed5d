// SPDX-License-Identifier: Apache-2.0
// Edges that follow from how a mesh was made: those of an icosphere on several levels, of HEALPix
// pixels and their neighbours, of the triangles of an ICON grid.
#pragma once

#include "graph/edges/edge_kind.h"

namespace aifs::graph {

struct MultiScaleKind : EdgeKind {
  std::vector<int64_t> levels;  // empty: all
  bool include_level_0 = false;
  int64_t x_hops = 1;

  void bind(config::Binder& b) override;
  void check(const EdgePlace& place) const override;
  EdgeList make(const EdgePlace& place) const override;
  // The levels meant for a mesh of this refinement.
  std::vector<int64_t> levels_of(int64_t refinement) const;
};

// Missing neighbours are left out. Pixels of a coarse level stand for their first descendant on the
// finest level that is listed; if that is not the resolution of the nodes, the numbers still count
// pixels of that level, as in Anemoi.
struct HealpixMultiScaleKind : EdgeKind {
  std::vector<int64_t> levels;  // empty: 1 ... resolution

  void bind(config::Binder& b) override;
  void check(const EdgePlace& place) const override;
  EdgeList make(const EdgePlace& place) const override;
};

// Among vertices: the triangles of all levels.
struct IconMeshKind : EdgeKind {
  void check(const EdgePlace& place) const override;
  EdgeList make(const EdgePlace& place) const override;
};

// From cells to the corners of the triangle that they lie in, or back.
struct IconCellsToMeshKind : EdgeKind {
  void check(const EdgePlace& place) const override;
  EdgeList make(const EdgePlace& place) const override;
};

struct NoEdgesKind : EdgeKind {
  EdgeList make(const EdgePlace&) const override { return {}; }
  bool is_none() const override { return true; }
};

}  // namespace aifs::graph
