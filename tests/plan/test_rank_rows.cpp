// SPDX-License-Identifier: Apache-2.0
// Counts of nodes, edges and rows against the partition that a run makes.
#include "plan/rank_rows.h"

#include <algorithm>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/nodes/tri_kinds.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::plan;
using graph::SourceRows;

namespace {

graph::Graph small_graph() {
  graph::GraphOptions options;
  options.grid = "o16";
  options.hidden.kind.set(graph::TriKind(3));
  return graph::build_graph(options, {});
}

void require_same(const EdgeRows& rows, const graph::LocalEdgeSet& local) {
  REQUIRE(rows.edges == static_cast<int64_t>(local.position.size()));
  REQUIRE(rows.sources == local.num_sources);
  REQUIRE(rows.sent == static_cast<int64_t>(local.exchange.send_rows.size()));
  REQUIRE(rows.received == local.exchange.num_received());
  int64_t peers = 0;
  for (size_t p = 0; p < local.exchange.send_counts.size(); ++p)
    peers += local.exchange.send_counts[p] + local.exchange.recv_counts[p] > 0 ? 1 : 0;
  REQUIRE(rows.peers == peers);
}

}  // namespace

TEST_CASE("rows of ranks are those of the partition of a run", "[plan]") {
  const graph::Graph graph = small_graph();
  for (const int64_t ranks : {2, 3, 7, 64}) {
    const Division division = divide(graph, {.ranks = ranks, .processor_layers = 4});
    const auto partition = graph::make_partition(graph, ranks, graph::HiddenOrder::kAuto, 4);
    for (int64_t rank = 0; rank < ranks; rank += 3) {
      INFO("rank " << rank << " of " << ranks);
      const RankRows& rows = division.ranks[static_cast<size_t>(rank)];
      REQUIRE(rows.data == partition.data.num_owned(rank));
      REQUIRE(rows.hidden == partition.of("hidden").num_owned(rank));
      require_same(rows.encoder, graph::local_edges(graph.edges("data", "hidden"), partition.data,
                                                    partition.of("hidden"), rank));
      require_same(rows.processor,
                   graph::local_edges(graph.edges("hidden", "hidden"), partition.of("hidden"),
                                      partition.of("hidden"), rank));
      require_same(rows.decoder, graph::local_edges(graph.edges("hidden", "data"),
                                                    partition.of("hidden"), partition.data, rank));
    }
  }
}

TEST_CASE("all sources come where mappers ask for all", "[plan]") {
  const graph::Graph graph = small_graph();
  const Division division = divide(graph, {.ranks = 3, .mapper_sources = SourceRows::kAll});
  int64_t hidden = 0;
  for (const RankRows& rank : division.ranks) {
    REQUIRE(rank.encoder.sources == graph.nodes("data").num_nodes());
    REQUIRE(rank.encoder.received == graph.nodes("data").num_nodes() - rank.data);
    REQUIRE(rank.processor.sources < graph.nodes("hidden").num_nodes());
    hidden += rank.hidden;
  }
  REQUIRE(hidden == graph.nodes("hidden").num_nodes());
  REQUIRE_THROWS_AS(divide(graph, {.ranks = hidden + 1}), ConfigError);
}

TEST_CASE("rows that leave a node are counted apart", "[plan]") {
  const graph::Graph graph = small_graph();
  const Division division = divide(graph, {.ranks = 8, .ranks_per_node = 4});
  const auto leaves = [](const RankRows& rank) { return rank.processor.far > 0; };
  REQUIRE(std::any_of(division.ranks.begin(), division.ranks.end(), leaves));
  for (const RankRows& rank : division.ranks) {
    REQUIRE(rank.processor.far <= std::max(rank.processor.sent, rank.processor.received));
    REQUIRE(rank.processor.far_peers <= 4);
  }
  const RankRows near = divide(graph, {.ranks = 8, .ranks_per_node = 8}).largest();
  REQUIRE(near.processor.far == 0);
  REQUIRE(near.processor.far_peers == 0);
}
