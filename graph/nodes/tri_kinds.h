// SPDX-License-Identifier: Apache-2.0
// Nodes of refined icosahedra: the whole sphere, a limited area, or coarse everywhere and fine in
// an area (tri_nodes.h).
#pragma once

#include "graph/nodes/node_kind.h"

namespace aifs::graph {

struct TriKind : NodeKind {
  int64_t level = 5;

  TriKind() = default;
  explicit TriKind(int64_t refinements) : level(refinements) {}
  void bind(config::Binder& b) override;
  MeshNodes make(const NodePlace& place) const override;
  std::optional<int64_t> num_nodes() const override { return icosphere_vertices(level); }
  std::optional<int64_t> refinement() const override { return level; }
};

struct LimitedAreaTriKind : NodeKind {
  int64_t level = 5;
  AreaOptions area;

  void bind(config::Binder& b) override;
  MeshNodes make(const NodePlace& place) const override;
  const AreaOptions* limits() const override { return &area; }
  std::optional<int64_t> refinement() const override { return level; }
};

struct StretchedTriKind : NodeKind {
  int64_t global_level = 5, local_level = 7;
  AreaOptions area;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  MeshNodes make(const NodePlace& place) const override;
  const AreaOptions* limits() const override { return &area; }
  std::optional<int64_t> refinement() const override { return local_level; }
};

}  // namespace aifs::graph
