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

// Columns of the attributes, (M, D), in the graph's own order.
at::Tensor attribute_columns(const graph::EdgeSet& edges,
                             const std::vector<std::string>& attributes) {
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
  return columns.empty() ? at::empty({edges.num_edges(), 0}) : at::cat(columns, 1);
}

// Takes this rank's edges out of the whole set.
void keep_local(EdgeTensors& tensors, const graph::EdgeSet& edges,
                const graph::NodePartition& sources, const graph::NodePartition& targets,
                const Shard& shard, graph::SourceRows rows) {
  const int64_t rank = shard.group.rank();
  const graph::LocalEdgeSet local = graph::local_edges(edges, sources, targets, rank, rows);
  tensors.rows = at::tensor(local.position, at::kLong);
  tensors.attributes = tensors.attributes.index_select(0, tensors.rows);
  tensors.index = EdgeIndex::create(to_tensor(local.source_index), to_tensor(local.target_index),
                                    local.num_sources, targets.num_owned(rank));
  auto exchange = std::make_shared<SourceExchange>();
  exchange->group = &shard.group;
  if (rows == graph::SourceRows::kHalo) {
    exchange->halo = parallel::RowExchange::create(local.exchange, shard.group, at::kCPU);
  } else {
    for (int64_t p = 0; p < sources.num_ranks(); ++p)
      exchange->gather_counts.push_back(sources.num_owned(p));
  }
  tensors.exchange = exchange;
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
  tensors.total = edges.num_edges();
  tensors.attributes =
      attribute_columns(edges, attributes).index_select(0, tensors.order).to(dtype);
  return tensors;
}

GraphTensors GraphTensors::create(const graph::Graph& graph,
                                  const std::vector<std::string>& edge_attributes,
                                  at::ScalarType dtype, const Shard* shard) {
  const graph::NodeSet& data = graph.nodes("data");
  const graph::NodeSet& hidden = graph.nodes("hidden");
  const auto nodes = [&](const graph::NodeSet& set,
                         graph::NodePartition graph::GraphPartition::*p) {
    NodeTensors tensors{coordinates(set), {}};
    if (shard)
      tensors.rows = at::tensor((shard->partition.*p).owned(shard->group.rank()), at::kLong);
    return tensors;
  };
  const auto partition_of = [&](const graph::NodeSet& set) -> const graph::NodePartition& {
    return &set == &data ? shard->partition.data : shard->partition.hidden;
  };
  const auto edges = [&](const graph::NodeSet& from, const graph::NodeSet& to) {
    const graph::EdgeSet& set = graph.edges(from.name, to.name);
    EdgeTensors tensors =
        make_edge_tensors(set, from.num_nodes(), to.num_nodes(), edge_attributes, dtype);
    const bool mapper = &from != &to;
    if (shard) {
      keep_local(tensors, set, partition_of(from), partition_of(to), *shard,
                 mapper ? shard->mapper_sources : graph::SourceRows::kHalo);
    }
    return tensors;
  };
  return {nodes(data, &graph::GraphPartition::data), nodes(hidden, &graph::GraphPartition::hidden),
          edges(data, hidden), edges(hidden, hidden), edges(hidden, data)};
}

GraphTensors GraphTensors::to(at::Device device) const {
  GraphTensors moved = *this;
  for (NodeTensors* nodes : {&moved.data, &moved.hidden}) {
    nodes->latlon_rad = nodes->latlon_rad.to(device);
    if (nodes->rows.defined()) nodes->rows = nodes->rows.to(device);
  }
  for (EdgeTensors* edges : {&moved.encoder, &moved.processor, &moved.decoder}) {
    edges->index = edges->index->to(device);
    edges->attributes = edges->attributes.to(device);
    edges->order = edges->order.to(device);
    if (edges->rows.defined()) edges->rows = edges->rows.to(device);
    if (edges->exchange && edges->exchange->halo) {
      auto exchange = std::make_shared<SourceExchange>(*edges->exchange);
      exchange->halo = exchange->halo->to(device);
      edges->exchange = exchange;
    }
  }
  return moved;
}

}  // namespace aifs::model
