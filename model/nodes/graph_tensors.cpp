// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/graph_tensors.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/nodes/latlon_rows.h"

namespace aifs::model {

namespace {

at::Tensor to_tensor(const std::vector<int32_t>& values) {
  return at::tensor(at::ArrayRef<int32_t>(values), at::kInt);
}

// Columns of the chosen attributes of some edges of a set, (m, D), in their order.
at::Tensor attribute_columns(const graph::EdgeSet& edges,
                             const std::map<std::string, graph::Attribute>& values,
                             const std::vector<std::string>& chosen, int64_t num_edges) {
  std::vector<at::Tensor> columns;
  for (const std::string& name : chosen) {
    const auto found = values.find(name);
    if (found == values.end()) {
      throw ConfigError(
          "model.edge_attributes",
          concat("edges ", edges.source, "->", edges.target, " have no attribute '", name, "'"),
          "the graph was made with other attributes than the model asks for");
    }
    const graph::Attribute& attribute = found->second;
    columns.push_back(at::tensor(at::ArrayRef<float>(attribute.values), at::kFloat)
                          .reshape({num_edges, attribute.width}));
  }
  return columns.empty() ? at::empty({num_edges, 0}) : at::cat(columns, 1);
}

// All edges, sorted, without an index.
EdgeTensors sorted_edges(const graph::EdgeSet& edges, const std::vector<std::string>& attributes,
                         at::ScalarType dtype) {
  EdgeTensors tensors;
  tensors.order =
      at::argsort(to_tensor(edges.target_index), /*stable=*/true, 0, /*descending=*/false);
  tensors.total = edges.num_edges();
  tensors.attributes = attribute_columns(edges, edges.attributes, attributes, edges.num_edges())
                           .index_select(0, tensors.order)
                           .to(dtype);
  return tensors;
}

void index_all(EdgeTensors& tensors, const graph::EdgeSet& edges, int64_t num_sources,
               int64_t num_targets) {
  const auto sorted = [&](const std::vector<int32_t>& ends) {
    return to_tensor(ends).index_select(0, tensors.order);
  };
  tensors.index = EdgeIndex::create(sorted(edges.source_index), sorted(edges.target_index),
                                    num_sources, num_targets);
}

// Sets all but the attributes.
void set_local(EdgeTensors& tensors, const graph::LocalEdgeSet& local,
               const graph::NodePartition& sources, const NodeShare& targets,
               graph::SourceRows rows) {
  tensors.rows = at::tensor(local.position, at::kLong);
  tensors.index =
      EdgeIndex::create(to_tensor(local.source_index), to_tensor(local.target_index),
                        local.num_sources, targets.partition.num_owned(targets.group->rank()));
  if (sources.num_ranks() == 1) return;
  auto exchange = std::make_shared<SourceExchange>();
  exchange->group = targets.group;
  if (rows == graph::SourceRows::kHalo) {
    exchange->halo = parallel::RowExchange::create(local.exchange, *targets.group, at::kCPU);
  } else {
    exchange->gather_counts = sources.counts();
  }
  tensors.exchange = exchange;
}

graph::SourceRows rows_of(const graph::EdgeSet& edges, const Shard& shard) {
  return edges.source == edges.target ? graph::SourceRows::kHalo : shard.mapper_sources;
}

}  // namespace

void keep_own_edges(EdgeTensors& tensors, const graph::EdgeSet& edges,
                    const graph::NodePartition& sources, const NodeShare& targets,
                    graph::SourceRows rows) {
  const graph::LocalEdgeSet local =
      graph::local_edges(edges, sources, targets.partition, targets.group->rank(), rows);
  set_local(tensors, local, sources, targets, rows);
  tensors.attributes = tensors.attributes.index_select(0, tensors.rows);
}

EdgeTensors make_edge_tensors(const graph::EdgeSet& edges, int64_t num_sources, int64_t num_targets,
                              const std::vector<std::string>& attributes, at::ScalarType dtype) {
  EdgeTensors tensors = sorted_edges(edges, attributes, dtype);
  index_all(tensors, edges, num_sources, num_targets);
  return tensors;
}

GraphTensors GraphTensors::create(const graph::Graph& graph,
                                  const std::vector<std::string>& edge_attributes,
                                  at::ScalarType dtype, const Shard* shard) {
  GraphTensors tensors;
  tensors.add_nodes(graph, shard);
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    const std::pair key(edges.source, edges.target);
    EdgeTensors& mine = tensors.edges_[key];
    try {
      mine = sorted_edges(edges, edge_attributes, dtype);
      if (!shard) {
        index_all(mine, edges, graph.nodes(edges.source).num_nodes(),
                  graph.nodes(edges.target).num_nodes());
      }
    } catch (const Error& error) {
      tensors.edges_.erase(key);
      tensors.unusable_[key] = error.what();  // may be edges that no part of the model uses
      continue;
    }
    if (shard) {
      keep_own_edges(mine, edges, shard->partition.of(edges.source),
                     *tensors.nodes(edges.target).share, rows_of(edges, *shard));
    }
  }
  return tensors;
}

void GraphTensors::add_nodes(const graph::Graph& graph, const Shard* shard) {
  if (shard) attention_ = shard->attention;
  for (const graph::NodeSet& nodes : graph.node_sets) {
    NodeTensors& mine = nodes_[nodes.name];
    mine.latlon_rad = latlon_rows(nodes.lat_rad, nodes.lon_rad);
    if (!shard) continue;
    mine.share = std::make_shared<const NodeShare>(
        NodeShare{shard->partition.of(nodes.name), &shard->group});
    mine.rows = at::tensor(mine.share->partition.owned(shard->group.rank()), at::kLong);
  }
}

GraphTensors GraphTensors::create(const graph::Graph& graph,
                                  const std::vector<graph::OwnEdges>& own,
                                  const std::vector<std::string>& edge_attributes,
                                  at::ScalarType dtype, const Shard& shard) {
  GraphTensors tensors;
  tensors.add_nodes(graph, &shard);
  for (size_t i = 0; i < own.size(); ++i) {
    const graph::EdgeSet& edges = graph.edge_sets[i];
    const std::pair key(edges.source, edges.target);
    EdgeTensors mine;
    try {
      const auto count = static_cast<int64_t>(own[i].local.position.size());
      mine.attributes =
          attribute_columns(edges, own[i].attributes, edge_attributes, count).to(dtype);
    } catch (const Error& error) {
      tensors.unusable_[key] = error.what();
      continue;
    }
    mine.total = own[i].total;
    set_local(mine, own[i].local, shard.partition.of(edges.source),
              *tensors.nodes(edges.target).share, rows_of(edges, shard));
    tensors.edges_[key] = mine;
  }
  return tensors;
}

const NodeTensors& GraphTensors::nodes(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) throw Error(concat("the graph has no nodes '", name, "'"));
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
  for (auto& [name, nodes] : moved.nodes_) {
    nodes.latlon_rad = nodes.latlon_rad.to(device);
    if (nodes.rows.defined()) nodes.rows = nodes.rows.to(device);
  }
  for (auto& [ends, edges] : moved.edges_) {
    edges.index = edges.index->to(device);
    edges.attributes = edges.attributes.to(device);
    if (edges.order.defined()) edges.order = edges.order.to(device);
    if (edges.rows.defined()) edges.rows = edges.rows.to(device);
    if (edges.exchange && edges.exchange->halo) {
      auto exchange = std::make_shared<SourceExchange>(*edges.exchange);
      exchange->halo = exchange->halo->to(device);
      edges.exchange = exchange;
    }
  }
  return moved;
}

}  // namespace aifs::model
