// SPDX-License-Identifier: Apache-2.0
#include "plan/rank_rows.h"

#include <algorithm>
#include <map>

#include "core/check.h"

namespace aifs::plan {

namespace {

// Rows that one rank gets from or gives to another.
struct Flow {
  int32_t to, from;
  int64_t rows;
};

// Every pair of ranks that exchange rows of these edges, by receiver.
std::vector<Flow> flows(const graph::EdgeSet& edges, const graph::NodePartition& sources,
                        const graph::NodePartition& targets) {
  std::vector<std::pair<int32_t, int32_t>> needed;  // receiver, node
  for (size_t e = 0; e < edges.source_index.size(); ++e) {
    const int32_t receiver = targets.owner(edges.target_index[e]);
    if (receiver != sources.owner(edges.source_index[e]))
      needed.emplace_back(receiver, edges.source_index[e]);
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  for (auto& [receiver, node] : needed)
    node = sources.owner(node);
  std::sort(needed.begin(), needed.end());
  std::vector<Flow> result;
  for (const auto& [receiver, sender] : needed) {
    if (result.empty() || result.back().to != receiver || result.back().from != sender)
      result.push_back({receiver, sender, 0});
    ++result.back().rows;
  }
  return result;
}

// Every rank gets all rows of every other.
std::vector<Flow> flows_of_all(const graph::NodePartition& sources) {
  std::vector<Flow> result;
  const auto ranks = static_cast<int32_t>(sources.num_ranks());
  for (int32_t to = 0; to < ranks; ++to) {
    for (int32_t from = 0; from < ranks; ++from) {
      if (to != from) result.push_back({to, from, sources.num_owned(from)});
    }
  }
  return result;
}

// Edges of each rank, and rows that they need of other ranks, where those alone are sent.
struct Counts {
  std::vector<int64_t> edges;
  std::vector<Flow> flows;
};

Counts counts_of(const graph::EdgeSet* edges, const graph::NodePartition& sources,
                 const graph::NodePartition& targets, graph::SourceRows rows) {
  Counts counts{std::vector<int64_t>(static_cast<size_t>(sources.num_ranks()), 0), {}};
  if (!edges) return counts;
  for (const int32_t target : edges->target_index)
    ++counts.edges[static_cast<size_t>(targets.owner(target))];
  if (sources.num_ranks() > 1 && rows == graph::SourceRows::kHalo)
    counts.flows = flows(*edges, sources, targets);
  return counts;
}

Counts counts_of(const graph::EdgeTraffic& traffic) {
  Counts counts{traffic.edges, {}};
  const auto ranks = static_cast<int32_t>(traffic.edges.size());
  for (int32_t to = 0; to < ranks; ++to) {
    for (int32_t from = 0; from < ranks; ++from) {
      const int64_t rows = traffic.rows[static_cast<size_t>(to * ranks + from)];
      if (rows > 0) counts.flows.push_back({to, from, rows});
    }
  }
  return counts;
}

std::vector<EdgeRows> edge_rows(const Counts& counts, const graph::NodePartition& sources,
                                graph::SourceRows rows, int64_t ranks_per_node) {
  std::vector<EdgeRows> ranks(static_cast<size_t>(sources.num_ranks()));
  for (size_t r = 0; r < ranks.size(); ++r)
    ranks[r].edges = counts.edges[r];
  if (ranks.size() == 1) {
    ranks[0].sources = sources.num_nodes();
    return ranks;
  }
  struct Pair {
    int64_t sent = 0, received = 0;
  };
  std::vector<std::map<int32_t, Pair>> pairs(ranks.size());
  for (const Flow& flow : rows == graph::SourceRows::kHalo ? counts.flows : flows_of_all(sources)) {
    pairs[static_cast<size_t>(flow.to)][flow.from].received += flow.rows;
    pairs[static_cast<size_t>(flow.from)][flow.to].sent += flow.rows;
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    EdgeRows& mine = ranks[r];
    const auto rank = static_cast<int64_t>(r);
    int64_t far_sent = 0, far_received = 0;
    for (const auto& [peer, pair] : pairs[r]) {
      mine.sent += pair.sent;
      mine.received += pair.received;
      ++mine.peers;
      if (peer / ranks_per_node == rank / ranks_per_node) continue;
      ++mine.far_peers;
      far_sent += pair.sent;
      far_received += pair.received;
    }
    mine.far = std::max(far_sent, far_received);
    mine.sources = sources.num_owned(rank) + mine.received;
  }
  return ranks;
}

// Rows times heads that a rank exchanges.
int64_t exchanged(const EdgeRows& rows) {
  int64_t sum = 0;
  for (const model::SequenceShare::Exchange& exchange : rows.attention->exchanges)
    sum += exchange.sent + exchange.received;
  return sum;
}

void raise(EdgeRows& most, const EdgeRows& other) {
  if (other.attention && (!most.attention || exchanged(other) > exchanged(most)))
    most.attention = other.attention;
  if (other.sent + other.received >
      most.sent + most.received) {  // of one rank: they belong together
    most.sent = other.sent;
    most.received = other.received;
  }
  for (const auto member : {&EdgeRows::edges, &EdgeRows::sources, &EdgeRows::peers, &EdgeRows::far,
                            &EdgeRows::far_peers})
    most.*member = std::max(most.*member, other.*member);
}

}  // namespace

const graph::EdgeSet* find_edges(const graph::Graph& graph, const std::string& source,
                                 const std::string& target) {
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    if (edges.source == source && edges.target == target) return &edges;
  }
  return nullptr;
}

RankRows Division::largest() const {
  RankRows most;
  for (const RankRows& rank : ranks) {
    most.data = std::max(most.data, rank.data);
    most.hidden = std::max(most.hidden, rank.hidden);
    raise(most.encoder, rank.encoder);
    raise(most.processor, rank.processor);
    raise(most.decoder, rank.decoder);
    most.coarser.resize(rank.coarser.size());
    for (size_t i = 0; i < rank.coarser.size(); ++i) {
      CoarseRows& largest = most.coarser[i];
      const CoarseRows& mesh = rank.coarser[i];
      largest.nodes = std::max(largest.nodes, mesh.nodes);
      raise(largest.within, mesh.within);
      raise(largest.up, mesh.up);
      raise(largest.down, mesh.down);
    }
  }
  return most;
}

namespace {

using CountsOf = std::function<Counts(const std::string& source, const std::string& target,
                                      graph::SourceRows rows)>;

void check_ranks(const graph::Graph& graph, const DivisionOptions& options) {
  const int64_t hidden = graph.nodes(options.meshes.front()).num_nodes();
  if (options.ranks <= hidden) return;
  throw ConfigError("parallel.model",
                    concat("is ", options.ranks, ", the mesh has ", hidden, " nodes"));
}

Division divided(const graph::GraphPartition& partition, const CountsOf& counts,
                 const DivisionOptions& options) {
  const std::string& finest = options.meshes.front();
  const auto rows = [&](const std::string& from, const std::string& to,
                        const std::optional<model::TransformerOptions>& attention) {
    const bool is_mapper = from != to;
    const graph::NodePartition &sources = partition.of(from), &targets = partition.of(to);
    const graph::SourceRows sent = is_mapper ? options.mapper_sources : graph::SourceRows::kHalo;
    std::vector<EdgeRows> ranks =
        edge_rows(counts(from, to, sent), sources, sent, options.ranks_per_node);
    for (size_t r = 0; r < ranks.size() && ranks.size() > 1 && attention; ++r) {
      ranks[r].attention = model::share_of_rank(
          static_cast<int64_t>(r), options.attention, sources, targets,
          attention->attention(is_mapper, sources.num_nodes(), targets.num_nodes()));
    }
    return ranks;
  };
  const auto encoder = rows("data", finest, options.encoder);
  const auto processor = rows(finest, finest, options.processor);
  const auto decoder = rows(finest, "data", options.decoder);
  Division division{.ranks = {}, .mapper_sources = options.mapper_sources};
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    division.ranks.push_back({partition.data.num_owned(rank), partition.of(finest).num_owned(rank),
                              encoder[r], processor[r], decoder[r]});
  }
  for (size_t i = 1; i < options.meshes.size(); ++i) {
    const std::string &mesh = options.meshes[i], &finer = options.meshes[i - 1];
    const auto within = rows(mesh, mesh, options.processor),
               up = rows(finer, mesh, options.upscale), down = rows(mesh, finer, options.downscale);
    for (int64_t rank = 0; rank < options.ranks; ++rank) {
      const auto r = static_cast<size_t>(rank);
      division.ranks[r].coarser.push_back(
          {partition.of(mesh).num_owned(rank), within[r], up[r], down[r]});
    }
  }
  return division;
}

}  // namespace

Division divide(const graph::Graph& graph, const DivisionOptions& options) {
  check_ranks(graph, options);
  const graph::GraphPartition partition =
      graph::make_partition(graph, options.ranks, options.order, options.processor_layers);
  const auto counts = [&](const std::string& from, const std::string& to, graph::SourceRows rows) {
    return counts_of(find_edges(graph, from, to), partition.of(from), partition.of(to), rows);
  };
  return divided(partition, counts, options);
}

Division divide(const CountedGraph& graph, const DivisionOptions& options) {
  check_ranks(graph.nodes, options);
  const auto counts = [&](const std::string& from, const std::string& to, graph::SourceRows) {
    return counts_of(graph.traffic(from, to));
  };
  return divided(graph.partition, counts, options);
}

}  // namespace aifs::plan
