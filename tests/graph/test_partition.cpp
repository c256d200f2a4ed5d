// SPDX-License-Identifier: Apache-2.0
#include "graph/partition.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/nodes/tri_kinds.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

Graph small_sphere() {
  GraphOptions options;
  options.grid = "o16";
  options.hidden.kind.set(TriKind(2));
  return build_graph(options, {});
}

// Returns what one rank would call each of its sources: own nodes, then received ones.
std::vector<int64_t> source_nodes(const NodePartition& sources, int64_t rank,
                                  const std::vector<LocalEdgeSet>& all) {
  std::vector<int64_t> nodes = sources.owned(rank);
  for (int64_t p = 0; p < sources.num_ranks(); ++p) {
    const ExchangePlan& plan = all[static_cast<size_t>(p)].exchange;
    const auto to_me = plan.send_counts.begin() + rank;
    const int64_t first = std::accumulate(plan.send_counts.begin(), to_me, int64_t{0});
    const std::vector<int64_t> owned = sources.owned(p);
    for (int64_t i = 0; i < *to_me; ++i) {
      const int64_t row = plan.send_rows[static_cast<size_t>(first + i)];
      nodes.push_back(owned[static_cast<size_t>(row)]);
    }
  }
  return nodes;
}

struct SortedEdges {
  std::vector<int32_t> source, target;
  explicit SortedEdges(const EdgeSet& edges) {
    std::vector<size_t> order(edges.source_index.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return edges.target_index[a] < edges.target_index[b];
    });
    for (const size_t e : order) {
      source.push_back(edges.source_index[e]);
      target.push_back(edges.target_index[e]);
    }
  }
};

}  // namespace

TEST_CASE("every node has one owner, and shares differ by one at most", "[partition]") {
  for (const int64_t ranks : {1, 2, 3, 7, 50}) {
    std::vector<int32_t> order(37);
    std::iota(order.rbegin(), order.rend(), 0);
    for (const NodePartition& p :
         {NodePartition::contiguous(37, ranks), NodePartition::along(order, ranks)}) {
      std::vector<int64_t> all;
      for (int64_t r = 0; r < ranks; ++r) {
        const std::vector<int64_t> mine = p.owned(r);
        REQUIRE(static_cast<int64_t>(mine.size()) == p.num_owned(r));
        REQUIRE(std::abs(p.num_owned(r) * ranks - 37) < ranks);
        REQUIRE(std::is_sorted(mine.begin(), mine.end()));
        for (size_t i = 0; i < mine.size(); ++i) {
          REQUIRE(p.owner(mine[i]) == r);
          REQUIRE(p.local(mine[i]) == static_cast<int32_t>(i));
        }
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<int64_t> expected(37);
      std::iota(expected.begin(), expected.end(), 0);
      REQUIRE(all == expected);
    }
  }
}

TEST_CASE("local edges are the edges at own targets, in order, with the right sources",
          "[partition]") {
  const Graph graph = small_sphere();
  for (const int64_t ranks : {1, 2, 3, 4, 7}) {
    const GraphPartition partition = make_partition(graph, ranks, HiddenOrder::kHilbert, 2);
    for (const EdgeSet& edges : graph.edge_sets) {
      const NodePartition &sources = partition.of(edges.source),
                          &targets = partition.of(edges.target);
      const SortedEdges sorted(edges);
      for (const SourceRows rows : {SourceRows::kHalo, SourceRows::kAll}) {
        std::vector<LocalEdgeSet> all;
        for (int64_t r = 0; r < ranks; ++r)
          all.push_back(local_edges(edges, sources, targets, r, rows));
        size_t seen = 0;
        for (int64_t r = 0; r < ranks; ++r) {
          const LocalEdgeSet& mine = all[static_cast<size_t>(r)];
          std::vector<int64_t> nodes;
          if (rows == SourceRows::kHalo) {
            nodes = source_nodes(sources, r, all);
          } else {
            for (int64_t p = 0; p < ranks; ++p) {
              const std::vector<int64_t> owned = sources.owned(p);
              nodes.insert(nodes.end(), owned.begin(), owned.end());
            }
          }
          REQUIRE(static_cast<int64_t>(nodes.size()) == mine.num_sources);
          REQUIRE(std::is_sorted(mine.position.begin(), mine.position.end()));
          REQUIRE(std::is_sorted(mine.target_index.begin(), mine.target_index.end()));
          const std::vector<int64_t> owned = targets.owned(r);
          for (size_t e = 0; e < mine.position.size(); ++e) {
            const auto whole = static_cast<size_t>(mine.position[e]);
            REQUIRE(nodes[static_cast<size_t>(mine.source_index[e])] == sorted.source[whole]);
            REQUIRE(owned[static_cast<size_t>(mine.target_index[e])] == sorted.target[whole]);
          }
          seen += mine.position.size();
        }
        REQUIRE(seen == sorted.source.size());
      }
    }
  }
}

TEST_CASE("what one rank sends is what the other expects, each row once", "[partition]") {
  const Graph graph = small_sphere();
  const GraphPartition partition = make_partition(graph, 5, HiddenOrder::kAuto, 2);
  const EdgeSet& edges = graph.edges("hidden", "hidden");
  const NodePartition& hidden = partition.of("hidden");
  int64_t rows = 0;
  std::vector<LocalEdgeSet> all;
  for (int64_t r = 0; r < 5; ++r)
    all.push_back(local_edges(edges, hidden, hidden, r));
  for (size_t p = 0; p < 5; ++p) {
    for (size_t q = 0; q < 5; ++q)
      REQUIRE(all[p].exchange.send_counts[q] == all[q].exchange.recv_counts[p]);
    REQUIRE(all[p].exchange.send_counts[p] == 0);
    rows += all[p].exchange.num_received();
  }
  REQUIRE(rows == exchange_volume(edges, hidden, hidden).halo_rows);
  REQUIRE(rows < exchange_volume(edges, hidden, hidden).gathered_rows);
}

TEST_CASE("neighbours on the Hilbert curve are near on the sphere", "[partition]") {
  // Mean distance of successive points on the curve, against the mean spacing of the points.
  const NodeSet nodes = samples::random_nodes("hidden", 4000, 5);
  const std::vector<int32_t> order = hilbert_order(nodes);
  double sum = 0.0;
  for (size_t i = 1; i < order.size(); ++i) {
    const auto a = static_cast<size_t>(order[i - 1]), b = static_cast<size_t>(order[i]);
    const double cosine = std::sin(nodes.lat_rad[a]) * std::sin(nodes.lat_rad[b]) +
                          std::cos(nodes.lat_rad[a]) * std::cos(nodes.lat_rad[b]) *
                              std::cos(double{nodes.lon_rad[a]} - nodes.lon_rad[b]);
    sum += std::acos(std::clamp(cosine, -1.0, 1.0));
  }
  const double spacing = std::sqrt(4 * kPi / 4000);
  REQUIRE(sum / 3999 < 1.5 * spacing);
}

TEST_CASE("auto moves no more rows than either order", "[partition]") {
  const Graph graph = small_sphere();
  for (const int64_t ranks : {2, 4, 16}) {
    const auto rows = [&](HiddenOrder order) {
      const GraphPartition p = make_partition(graph, ranks, order, 4);
      const NodePartition& hidden = p.of("hidden");
      return exchange_volume(graph.edges("data", "hidden"), p.data, hidden).halo_rows +
             4 * exchange_volume(graph.edges("hidden", "hidden"), hidden, hidden).halo_rows +
             exchange_volume(graph.edges("hidden", "data"), hidden, p.data).halo_rows;
    };
    const int64_t chosen = rows(HiddenOrder::kAuto);
    REQUIRE(chosen == std::min(rows(HiddenOrder::kLatitude), rows(HiddenOrder::kHilbert)));
  }
}
