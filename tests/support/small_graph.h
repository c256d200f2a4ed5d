// SPDX-License-Identifier: Apache-2.0
// Small random graphs for tests of the model: no geometry, any edges.
#pragma once

#include <memory>
#include <string>

#include "graph/base/graph.h"
#include "model/kernels/edge_index.h"

namespace aifs::test {

// Edges in no order between random nodes, with random attributes edge_length (1) and edge_dirs (2).
// The last source and the last target have no edges; target 0 has about a third of all.
graph::EdgeSet random_edges(const std::string& source, int64_t num_sources,
                            const std::string& target, int64_t num_targets, int64_t num_edges,
                            uint64_t seed);

// Returns such edges, sorted for the kernels.
std::shared_ptr<const model::EdgeIndex> random_edge_index(int64_t num_sources, int64_t num_targets,
                                                          int64_t num_edges, uint64_t seed);

struct GraphSizes {
  int64_t data = 0, hidden = 0;
  int64_t encoder_edges = 0, processor_edges = 0, decoder_edges = 0;
};
// Node sets "data" and "hidden" at random places and the three edge sets between them.
graph::Graph random_graph(const GraphSizes& sizes, uint64_t seed);
// Adds a coarser mesh, edges among its nodes, and edges from the finer mesh and to it.
void add_mesh(graph::Graph& graph, const std::string& finer, const std::string& name,
              int64_t num_nodes);

}  // namespace aifs::test
