// SPDX-License-Identifier: Apache-2.0
// A graph as the model uses it: tensors, edges sorted by target.
#pragma once

#include <map>
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

class GraphTensors {
 public:
  // All node sets, and the edge sets that have the attributes `edge_attributes`, which are used in
  // this column order; attributes get the type `dtype`.
  static GraphTensors create(const graph::Graph& graph,
                             const std::vector<std::string>& edge_attributes, at::ScalarType dtype);

  // Throw Error naming what the graph lacks.
  const at::Tensor& latlon_rad(const std::string& nodes) const;  // (N, 2) f32
  const EdgeTensors& edges(const std::string& source, const std::string& target) const;
  bool has_edges(const std::string& source, const std::string& target) const;

  int64_t num_nodes(const std::string& nodes) const { return latlon_rad(nodes).size(0); }

  GraphTensors to(at::Device device) const;

 private:
  std::map<std::string, at::Tensor> latlon_rad_;
  std::map<std::pair<std::string, std::string>, EdgeTensors> edges_;
  std::map<std::pair<std::string, std::string>, std::string> unusable_;  // why
};

// Edges of one set, sorted, for tests and other graphs.
EdgeTensors make_edge_tensors(const graph::EdgeSet& edges, int64_t num_sources, int64_t num_targets,
                              const std::vector<std::string>& attributes, at::ScalarType dtype);

}  // namespace aifs::model
