// SPDX-License-Identifier: Apache-2.0
// Nodes of grids that are known by a name or a number: Gaussian grids, HEALPix, and the cells of
// the run's dataset.
#pragma once

#include "graph/nodes/node_kind.h"

namespace aifs::graph {

// The cells of the dataset that is called as the node set.
struct DatasetKind : NodeKind {
  MeshNodes make(const NodePlace& place) const override;
};

struct GaussianGridKind : NodeKind {
  std::string grid = "o96";

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  MeshNodes make(const NodePlace& place) const override;
  std::optional<int64_t> num_nodes() const override;
};

struct HealpixKind : NodeKind {
  int64_t resolution = 5;

  void bind(config::Binder& b) override;
  MeshNodes make(const NodePlace& place) const override;
};

// Has no edges of its own: they need all pixels.
struct LimitedAreaHealpixKind : NodeKind {
  int64_t resolution = 5;
  AreaOptions area;

  void bind(config::Binder& b) override;
  MeshNodes make(const NodePlace& place) const override;
  const AreaOptions* limits() const override { return &area; }
};

}  // namespace aifs::graph
