// SPDX-License-Identifier: Apache-2.0
// What each rank of a divided sample has: nodes, edges, and the rows it exchanges. From the same
// partition as the run's (graph/partition.h), for any number of ranks; O(edges log edges).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph_part.h"
#include "graph/partition.h"
#include "model/layers/transformer.h"

namespace aifs::plan {

// The edges between two node sets, or null where the graph has none.
const graph::EdgeSet* find_edges(const graph::Graph& graph, const std::string& source,
                                 const std::string& target);

// The edges that end at nodes of one rank. Rows are those of one copy of the graph.
struct EdgeRows {
  int64_t edges = 0;
  int64_t sources = 0;    // rows that the edges may start from, own and received
  int64_t sent = 0;       // rows to other ranks in a forward pass
  int64_t received = 0;   // and from them
  int64_t peers = 0;      // ranks it sends to or receives from
  int64_t far = 0;        // of the larger of sent and received, rows over the network
  int64_t far_peers = 0;  // of the peers, those on other hosts
  // Share of a Transformer, which has no use for edges.
  std::optional<model::SequenceShare> attention = {};
};

// Own nodes of a coarser mesh, the edges among them, and those from the next finer mesh and to it.
struct CoarseRows {
  int64_t nodes = 0;
  EdgeRows within = {}, up = {}, down = {};
};

struct RankRows {
  int64_t data = 0, hidden = 0;  // own nodes, of a hierarchy those of its finest mesh
  EdgeRows encoder = {}, processor = {}, decoder = {};
  std::vector<CoarseRows> coarser = {};  // meshes of a hierarchy, fine to coarse
};

struct Division {
  std::vector<RankRows> ranks = {};
  graph::SourceRows mapper_sources = graph::SourceRows::kHalo;

  bool divided() const { return ranks.size() > 1; }
  // The most of every number over ranks; rows sent and received are those of the busiest.
  RankRows largest() const;
};

struct DivisionOptions {
  int64_t ranks = 1;
  graph::HiddenOrder order = graph::HiddenOrder::kAuto;
  graph::SourceRows mapper_sources = graph::SourceRows::kHalo;
  int64_t processor_layers = 1;               // what kAuto weighs
  int64_t ranks_per_node = 8;                 // of the machine: consecutive ranks share a host
  std::vector<std::string> meshes{"hidden"};  // fine to coarse
  // Options of parts that attend to whole node sets, with the heads of a tensor rank.
  std::optional<model::TransformerOptions> encoder = {}, processor = {}, decoder = {};
  std::optional<model::TransformerOptions> upscale = {}, downscale = {};
  model::AttentionSharing attention = model::AttentionSharing::kAuto;
};

// Throws ConfigError (path "parallel.model") for more ranks than hidden nodes. Edges that the graph
// of a hierarchy lacks are none.
Division divide(const graph::Graph& graph, const DivisionOptions& options);

// The same of a graph without edges, which its ranks have counted. `partition` is over
// options.ranks.
struct CountedGraph {
  const graph::Graph& nodes;
  const graph::GraphPartition& partition;
  std::function<graph::EdgeTraffic(const std::string& source, const std::string& target)> traffic;
};
Division divide(const CountedGraph& graph, const DivisionOptions& options);

}  // namespace aifs::plan
