// SPDX-License-Identifier: Apache-2.0
// A graph as the model uses it: tensors, edges sorted by target.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "model/kernels/edge_index.h"

namespace aifs::model {

// One edge set, stably sorted by target; trainable edge tensors are in this order.
struct EdgeTensors {
  std::shared_ptr<const EdgeIndex> index;
  at::Tensor attributes;  // (M, D), columns of the listed attributes side by side
  at::Tensor order;       // (M) i64: position of each sorted edge in the graph's own list

  int64_t attribute_width() const { return attributes.size(1); }
};

struct GraphTensors {
  at::Tensor data_latlon_rad, hidden_latlon_rad;  // (N, 2) f32
  EdgeTensors encoder, processor, decoder;        // data -> hidden -> hidden -> data

  int64_t num_data() const { return data_latlon_rad.size(0); }
  int64_t num_hidden() const { return hidden_latlon_rad.size(0); }

  // Node sets "data" and "hidden" with the three edge sets between them. `edge_attributes` are the
  // names to use, in column order; attributes get the type `dtype`.
  static GraphTensors create(const graph::Graph& graph,
                             const std::vector<std::string>& edge_attributes, at::ScalarType dtype);
  GraphTensors to(at::Device device) const;
};

// Edges of one set, sorted, for tests and other graphs.
EdgeTensors make_edge_tensors(const graph::EdgeSet& edges, int64_t num_sources, int64_t num_targets,
                              const std::vector<std::string>& attributes, at::ScalarType dtype);

}  // namespace aifs::model
