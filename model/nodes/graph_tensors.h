// SPDX-License-Identifier: Apache-2.0
// A graph as the model uses it: tensors, edges sorted by target.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "graph/graph_part.h"
#include "graph/partition.h"
#include "model/kernels/edge_index.h"
#include "parallel/autograd.h"

namespace aifs::model {

// How the source rows of the edges of one rank come from the ranks that own them.
struct SourceExchange {
  std::shared_ptr<const parallel::RowExchange> halo;  // only what is needed, or ...
  parallel::Counts gather_counts;                     // ... all rows of all ranks
  parallel::Communicator* group = nullptr;
};

// The edges that end at this rank's nodes, stably sorted by target. Trainable edge tensors hold a
// row for every edge of the whole graph in this order.
struct EdgeTensors {
  std::shared_ptr<const EdgeIndex> index;  // local numbers
  at::Tensor attributes;                   // (m, D), columns of the listed attributes side by side
  at::Tensor order;   // (M) i64: position of each sorted edge in the graph's own list; undefined
                      // where a rank has no more than its part
  at::Tensor rows;    // (m) i64: places of this rank's edges among the M; undefined: all
  int64_t total = 0;  // M
  std::shared_ptr<const SourceExchange> exchange;  // null: this rank owns every source

  int64_t attribute_width() const { return attributes.size(1); }
};

// How the nodes of one set are divided over the ranks that share a sample.
struct NodeShare {
  graph::NodePartition partition;
  parallel::Communicator* group = nullptr;
};

// Nodes of one set: coordinates of all, and which of them are this rank's.
struct NodeTensors {
  at::Tensor latlon_rad = {};                        // (N, 2) f32
  at::Tensor rows = {};                              // (n) i64 ascending; undefined: all
  std::shared_ptr<const NodeShare> share = nullptr;  // null: all are here

  int64_t total() const { return latlon_rad.size(0); }
};

// How attention over whole node sets meets the rows of other ranks (model/nodes/local_sequences.h).
enum class AttentionSharing { kAuto, kHeads, kSequence };

// A rank's part in the division of one sample over a group. The group outlives every tensor.
struct Shard {
  const graph::GraphPartition& partition;
  parallel::Communicator& group;
  // How mappers get their sources; the processor always exchanges halos.
  graph::SourceRows mapper_sources = graph::SourceRows::kHalo;
  AttentionSharing attention = AttentionSharing::kAuto;
};

class GraphTensors {
 public:
  // All node sets, and the edge sets that have the attributes `edge_attributes`, which are used in
  // this column order; attributes get the type `dtype`. With a shard: the part of its rank.
  static GraphTensors create(const graph::Graph& graph,
                             const std::vector<std::string>& edge_attributes, at::ScalarType dtype,
                             const Shard* shard = nullptr);
  // The part of a rank that has no more than that: `own` are its edges of each set of the graph.
  static GraphTensors create(const graph::Graph& graph, const std::vector<graph::OwnEdges>& own,
                             const std::vector<std::string>& edge_attributes, at::ScalarType dtype,
                             const Shard& shard);

  // Throw Error naming what the graph lacks.
  const NodeTensors& nodes(const std::string& name) const;
  const at::Tensor& latlon_rad(const std::string& name) const { return nodes(name).latlon_rad; }
  const EdgeTensors& edges(const std::string& source, const std::string& target) const;
  bool has_edges(const std::string& source, const std::string& target) const;

  AttentionSharing attention() const { return attention_; }
  // Nodes of the whole set.
  int64_t num_nodes(const std::string& name) const { return nodes(name).total(); }

  GraphTensors to(at::Device device) const;

 private:
  void add_nodes(const graph::Graph& graph, const Shard* shard);

  std::map<std::string, NodeTensors> nodes_;
  std::map<std::pair<std::string, std::string>, EdgeTensors> edges_;
  std::map<std::pair<std::string, std::string>, std::string> unusable_;  // why
  AttentionSharing attention_ = AttentionSharing::kAuto;
};

// Leaves this rank's edges of all, whose attributes are sorted by target; `edges` gives their ends.
// Sources divided over one rank are those of a set that every rank has whole (with kAll).
void keep_own_edges(EdgeTensors& tensors, const graph::EdgeSet& edges,
                    const graph::NodePartition& sources, const NodeShare& targets,
                    graph::SourceRows rows);

// Edges of one set, sorted, for tests and other graphs.
EdgeTensors make_edge_tensors(const graph::EdgeSet& edges, int64_t num_sources, int64_t num_targets,
                              const std::vector<std::string>& attributes, at::ScalarType dtype);

constexpr auto enum_table(AttentionSharing) {
  using enum AttentionSharing;
  return std::to_array<EnumName<AttentionSharing>>(
      {{kAuto, "auto"}, {kHeads, "heads"}, {kSequence, "sequence"}});
}

}  // namespace aifs::model
