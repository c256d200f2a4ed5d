// SPDX-License-Identifier: Apache-2.0
// A graph as named tensors of a safetensors file, a form that any program reads:
//   nodes/<set>/latlon_rad (N, 2)    nodes/<set>/<attribute> (N, width)
//   edges/<source>_to_<target>/edge_index (2, M) source and target    .../<attribute> (M, width)
#pragma once

#include <string>

#include "core/named_tensors.h"
#include "graph/base/graph.h"

namespace aifs::app {

// All node and edge sets under `prefix`. Throws DataError naming what does not fit.
graph::Graph read_graph_tensors(const NamedTensors& file, const std::string& prefix = "");

void write_graph_tensors(const fs::path& path, const graph::Graph& graph);

}  // namespace aifs::app
