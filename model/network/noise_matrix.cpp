// SPDX-License-Identifier: Apache-2.0
#include "model/network/noise_matrix.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "model/nodes/matrix_file.h"

namespace aifs::model {

namespace {

const graph::EdgeSet& edges_from(const std::string& nodes, const graph::Graph& graph,
                                 const std::string& mesh) {
  for (const graph::EdgeSet& edges : graph.edge_sets)
    if (edges.source == nodes && edges.target == mesh) return edges;
  throw ConfigError("model.ensemble.noise_nodes",
                    concat("the graph has no edges ", nodes, "->", mesh));
}

at::Tensor weights_of(const graph::EdgeSet& edges, const std::string& name) {
  if (name.empty()) return at::ones({edges.num_edges()}, at::kFloat);
  const auto found = edges.attributes.find(name);
  if (found == edges.attributes.end() || found->second.width != 1) {
    std::vector<std::string> known;
    for (const auto& [attribute, values] : edges.attributes)
      if (values.width == 1) known.push_back(attribute);
    throw ConfigError("model.ensemble.noise_weights",
                      concat("the edges ", edges.source, "->", edges.target, " have no attribute '",
                             name, "' of one value"),
                      nearest_names(name, known));
  }
  return at::tensor(at::ArrayRef<float>(found->second.values), at::kFloat);
}

SparseMatrix matrix_of(const graph::EdgeSet& edges, const graph::Graph& graph,
                       const std::string& weights) {
  const auto numbers = [](const std::vector<int32_t>& list) {
    return at::tensor(at::ArrayRef<int32_t>(list), at::kInt);
  };
  return SparseMatrix::create(numbers(edges.target_index), numbers(edges.source_index),
                              weights_of(edges, weights), graph.nodes(edges.target).num_nodes(),
                              graph.nodes(edges.source).num_nodes());
}

}  // namespace

SparseMatrix noise_matrix(const EnsembleOptions& options, const graph::Graph& graph,
                          const std::string& mesh) {
  if (options.noise_nodes.empty() && options.noise_matrix.empty()) return {};
  const SparseMatrix matrix =
      options.noise_matrix.empty()
          ? matrix_of(edges_from(options.noise_nodes, graph, mesh), graph, options.noise_weights)
          : read_matrix(options.noise_matrix, graph.nodes(mesh).num_nodes(), -1,
                        "model.ensemble.noise_matrix");
  return options.noise_normalised ? matrix.row_normalised() : matrix;
}

}  // namespace aifs::model
