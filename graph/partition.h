// SPDX-License-Identifier: Apache-2.0
// Which rank owns which node of a graph, and what a rank must get from others to follow its edges.
// Edges belong to the owner of their target, so sums over the edges of a node never cross ranks and
// keep their order. Pure functions of graph and number of ranks: every rank computes the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/exchange_plan.h"
#include "graph/base/graph.h"

namespace aifs::graph {

// The nodes of one set, divided: each rank owns some, ascending.
class NodePartition {
 public:
  NodePartition() = default;
  // `owner` (N): rank of each node.
  NodePartition(std::vector<int32_t> owner, int64_t num_ranks);
  // Contiguous ranges of nodes, even to one node.
  static NodePartition contiguous(int64_t num_nodes, int64_t num_ranks);
  // Even to one node along an order of all nodes.
  static NodePartition along(const std::vector<int32_t>& order, int64_t num_ranks);

  int64_t num_ranks() const { return static_cast<int64_t>(begin_.size()) - 1; }
  int64_t num_nodes() const { return static_cast<int64_t>(owner_.size()); }
  int64_t num_owned(int64_t rank) const;
  // The same of every rank.
  std::vector<int64_t> counts() const;
  // Nodes of the ranks before this one.
  int64_t begin(int64_t rank) const { return begin_[static_cast<size_t>(rank)]; }
  int32_t owner(int64_t node) const { return owner_[static_cast<size_t>(node)]; }
  // Position of a node among those of its owner.
  int32_t local(int64_t node) const { return local_[static_cast<size_t>(node)]; }
  // Nodes of one rank, ascending.
  std::vector<int64_t> owned(int64_t rank) const;
  // Whether the nodes of each rank follow those of the rank before it.
  bool in_node_order() const;

 private:
  std::vector<int32_t> owner_, local_;
  std::vector<int64_t> begin_{0};  // of each rank in nodes_
  std::vector<int32_t> nodes_;     // grouped by rank
};

struct GraphPartition {
  NodePartition data;
  std::map<std::string, NodePartition> meshes;  // every other node set

  // Throws Error for a set that the graph does not have.
  const NodePartition& of(const std::string& nodes) const;
};

enum class HiddenOrder { kAuto, kLatitude, kHilbert, kMesh };

// Rows that cross ranks in one forward pass of one copy of the graph, by the two ways of getting
// them: only the rows that edges need, or all of them.
struct ExchangeVolume {
  int64_t halo_rows = 0, gathered_rows = 0;
};

// Data nodes (set "data") in contiguous ranges, as datasets are read; those of every mesh by
// latitude, along a Hilbert curve on the faces of a cube, or as the mesh numbers them. kAuto:
// latitude or curve, whichever moves fewer rows over once all edges between sets and `layers` times
// those within one.
GraphPartition make_partition(const Graph& graph, int64_t num_ranks, HiddenOrder order,
                              int64_t layers);
// The same where `rows_moved` counts, for those edges are elsewhere.
GraphPartition make_partition(const std::vector<NodeSet>& node_sets, int64_t num_ranks,
                              HiddenOrder order,
                              const std::function<int64_t(const GraphPartition&)>& rows_moved);

ExchangeVolume exchange_volume(const EdgeSet& edges, const NodePartition& sources,
                               const NodePartition& targets);

// How a rank gets the sources of its edges: just those it needs, or all of them.
enum class SourceRows { kHalo, kAll };

// The edges that end at nodes of one rank, in local numbers.
struct LocalEdgeSet {
  std::vector<int64_t> position;  // (m) of each edge in the whole list stably sorted by target
  // (m) Local target. Source: kHalo, own nodes first (by local number), then received ones;
  // kAll, position among all sources grouped by rank.
  std::vector<int32_t> source_index, target_index;
  int64_t num_sources = 0;  // that the source numbers count
  ExchangePlan exchange;    // kHalo: rows of local source nodes; kAll: empty
};
LocalEdgeSet local_edges(const EdgeSet& edges, const NodePartition& sources,
                         const NodePartition& targets, int64_t rank,
                         SourceRows rows = SourceRows::kHalo);

// Order of points along a Hilbert curve on the cube around the sphere: near on the curve, near on
// the sphere.
std::vector<int32_t> hilbert_order(const NodeSet& nodes);
// From north to south, west to east within a latitude.
std::vector<int32_t> latitude_order(const NodeSet& nodes);

constexpr auto enum_table(SourceRows) {
  using enum SourceRows;
  return std::to_array<EnumName<SourceRows>>({{kHalo, "needed"}, {kAll, "all"}});
}

constexpr auto enum_table(HiddenOrder) {
  using enum HiddenOrder;
  return std::to_array<EnumName<HiddenOrder>>(
      {{kAuto, "auto"}, {kLatitude, "latitude"}, {kHilbert, "hilbert"}, {kMesh, "mesh"}});
}

}  // namespace aifs::graph
