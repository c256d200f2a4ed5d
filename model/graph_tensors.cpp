// SPDX-License-Identifier: Apache-2.0
#include "model/graph_tensors.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::model {

namespace {

at::Tensor coordinates(const graph::NodeSet& nodes) {
  const int64_t n = nodes.num_nodes();
  at::Tensor latlon = at::empty({n, 2}, at::kFloat);
  auto rows = latlon.accessor<float, 2>();
  for (int64_t i = 0; i < n; ++i) {
    rows[i][0] = nodes.lat_rad[static_cast<size_t>(i)];
    rows[i][1] = nodes.lon_rad[static_cast<size_t>(i)];
  }
  return latlon;
}

at::Tensor to_tensor(const std::vector<int32_t>& values) {
  return at::tensor(at::ArrayRef<int32_t>(values), at::kInt);
}

}  // namespace

EdgeTensors make_edge_tensors(const graph::EdgeSet& edges, int64_t num_sources, int64_t num_targets,
                              const std::vector<std::string>& attributes, at::ScalarType dtype) {
  const at::Tensor source = to_tensor(edges.source_index), target = to_tensor(edges.target_index);
  EdgeTensors tensors;
  tensors.order = at::argsort(target, /*stable=*/true, 0, /*descending=*/false);
  tensors.index =
      EdgeIndex::create(source.index_select(0, tensors.order),
                        target.index_select(0, tensors.order), num_sources, num_targets);
  std::vector<at::Tensor> columns;
  for (const std::string& name : attributes) {
    const auto found = edges.attributes.find(name);
    if (found == edges.attributes.end()) {
      throw Error(
          concat("edges ", edges.source, "->", edges.target, " have no attribute '", name, "'"),
          "the graph was made with other attributes than the model asks for");
    }
    const graph::Attribute& attribute = found->second;
    columns.push_back(at::tensor(at::ArrayRef<float>(attribute.values), at::kFloat)
                          .reshape({edges.num_edges(), attribute.width}));
  }
  const at::Tensor all = columns.empty() ? at::empty({edges.num_edges(), 0}) : at::cat(columns, 1);
  tensors.attributes = all.index_select(0, tensors.order).to(dtype);
  return tensors;
}

GraphTensors GraphTensors::create(const graph::Graph& graph,
                                  const std::vector<std::string>& edge_attributes,
                                  at::ScalarType dtype) {
  GraphTensors tensors;
  for (const graph::NodeSet& nodes : graph.node_sets)
    tensors.latlon_rad_[nodes.name] = coordinates(nodes);
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    const std::pair key(edges.source, edges.target);
    try {
      tensors.edges_[key] =
          make_edge_tensors(edges, graph.nodes(edges.source).num_nodes(),
                            graph.nodes(edges.target).num_nodes(), edge_attributes, dtype);
    } catch (const Error& error) {
      tensors.unusable_[key] = error.what();  // may be edges that no part of the model uses
    }
  }
  return tensors;
}

const at::Tensor& GraphTensors::latlon_rad(const std::string& nodes) const {
  const auto found = latlon_rad_.find(nodes);
  if (found == latlon_rad_.end()) throw Error(concat("the graph has no nodes '", nodes, "'"));
  return found->second;
}

bool GraphTensors::has_edges(const std::string& source, const std::string& target) const {
  return edges_.count({source, target}) != 0;
}

const EdgeTensors& GraphTensors::edges(const std::string& source, const std::string& target) const {
  const auto found = edges_.find({source, target});
  if (found != edges_.end()) return found->second;
  const auto reason = unusable_.find({source, target});
  throw Error(reason != unusable_.end() ? reason->second
                                        : concat("the graph has no edges ", source, "->", target));
}

GraphTensors GraphTensors::to(at::Device device) const {
  GraphTensors moved = *this;
  for (auto& [name, latlon] : moved.latlon_rad_)
    latlon = latlon.to(device);
  for (auto& [ends, edges] : moved.edges_) {
    edges.index = edges.index->to(device);
    edges.attributes = edges.attributes.to(device);
    edges.order = edges.order.to(device);
  }
  return moved;
}

}  // namespace aifs::model
