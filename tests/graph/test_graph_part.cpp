// SPDX-License-Identifier: Apache-2.0
// Parts that ranks make of slices against those that are cut from the whole graph.
#include "graph/graph_part.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/graph_slice.h"
#include "tests/graph/graph_options.h"
#include "tests/support/catch.h"
#include "tests/support/thread_peers.h"

using namespace aifs;
using namespace aifs::graph;
using test::run_peers;

namespace {

// Edges sorted by target (knn), by source (reversed) and by neither (levels of a mesh).
Graph graph_of(const std::string& encoder) {
  return build_graph(samples::parsed(R"({"grid": "o16", "hidden": {"kind": "tri", "refinement": 2},
      "encoder": {"kind": ")" + encoder +
                                     R"("}})"),
                     {});
}

// Rows of an attribute at these places of the list sorted by target.
std::vector<float> sorted_rows(const EdgeSet& edges, const Attribute& attribute,
                               const std::vector<int64_t>& places) {
  std::vector<size_t> order(edges.target_index.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return edges.target_index[a] < edges.target_index[b];
  });
  std::vector<float> rows;
  for (const int64_t place : places) {
    const size_t first = order[static_cast<size_t>(place)] * static_cast<size_t>(attribute.width);
    for (size_t column = 0; column < static_cast<size_t>(attribute.width); ++column)
      rows.push_back(attribute.values[first + column]);
  }
  return rows;
}

void require_same(const OwnEdges& own, const EdgeSet& edges, const LocalEdgeSet& wanted) {
  const LocalEdgeSet& local = own.local;
  const std::string set = concat(edges.source, "->", edges.target);
  AIFS_CHECK(own.total == edges.num_edges(), set, ": another total");
  AIFS_CHECK(local.position == wanted.position, set, ": other positions");
  AIFS_CHECK(local.source_index == wanted.source_index, set, ": other sources");
  AIFS_CHECK(local.target_index == wanted.target_index, set, ": other targets");
  AIFS_CHECK(local.num_sources == wanted.num_sources, set, ": other numbers of sources");
  AIFS_CHECK(local.exchange.send_rows == wanted.exchange.send_rows, set, ": other rows sent");
  AIFS_CHECK(local.exchange.send_counts == wanted.exchange.send_counts, set, ": other receivers");
  AIFS_CHECK(local.exchange.recv_counts == wanted.exchange.recv_counts, set, ": other senders");
  for (const auto& [name, attribute] : edges.attributes)
    AIFS_CHECK(own.attributes.at(name).values == sorted_rows(edges, attribute, local.position), set,
               ": another ", name);
}

}  // namespace

TEST_CASE("a rank's part of slices is its part of the whole, bit for bit", "[graph_part]") {
  for (const char* encoder : {"cutoff", "reversed_knn"}) {
    const Graph graph = graph_of(encoder);
    for (const int64_t ranks : {1, 2, 3, 7}) {
      for (const HiddenOrder order : {HiddenOrder::kHilbert, HiddenOrder::kMesh}) {
        const GraphPartition partition = make_partition(graph, ranks, order, 2);
        for (const SourceRows rows : {SourceRows::kHalo, SourceRows::kAll}) {
          INFO(encoder << ", " << ranks << " ranks");
          run_peers(ranks, [&](Peers& peers) {
            const GraphPart part =
                take_part(slice_of(graph, peers.rank(), ranks), partition, rows, peers);
            for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
              const EdgeSet& edges = graph.edge_sets[i];
              const bool is_mapper = edges.source != edges.target;
              require_same(
                  part.own[i], edges,
                  local_edges(edges, partition.of(edges.source), partition.of(edges.target),
                              peers.rank(), is_mapper ? rows : SourceRows::kHalo));
            }
          });
        }
      }
    }
  }
}

TEST_CASE("what is left of a divided graph has all nodes and no edge", "[graph_part]") {
  const Graph graph = graph_of("cutoff");
  const GraphPartition partition = make_partition(graph, 2, HiddenOrder::kMesh, 2);
  run_peers(2, [&](Peers& peers) {
    const GraphPart part =
        take_part(slice_of(graph, peers.rank(), 2), partition, SourceRows::kHalo, peers);
    for (size_t i = 0; i < graph.node_sets.size(); ++i)
      AIFS_CHECK(part.graph.node_sets[i].lat_rad == graph.node_sets[i].lat_rad, "other nodes");
    for (const EdgeSet& edges : part.graph.edge_sets) {
      AIFS_CHECK(edges.num_edges() == 0, "edges are left");
      AIFS_CHECK(edges.attributes.at("edge_dirs").width == 2, "another width");
    }
  });
}

TEST_CASE("all ranks know the edges of each, and the rows that it needs of others",
          "[graph_part]") {
  const Graph graph = graph_of("cutoff");
  const int64_t ranks = 3;
  const GraphPartition partition = make_partition(graph, ranks, HiddenOrder::kHilbert, 2);
  run_peers(ranks, [&](Peers& peers) {
    const GraphPart part =
        take_part(slice_of(graph, peers.rank(), ranks), partition, SourceRows::kHalo, peers);
    for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
      const EdgeSet& edges = graph.edge_sets[i];
      const EdgeTraffic traffic = traffic_of(part.own[i], peers);
      const NodePartition &sources = partition.of(edges.source),
                          &targets = partition.of(edges.target);
      AIFS_CHECK(std::accumulate(traffic.edges.begin(), traffic.edges.end(), int64_t{0}) ==
                     edges.num_edges(),
                 "other numbers of edges");
      AIFS_CHECK(std::accumulate(traffic.rows.begin(), traffic.rows.end(), int64_t{0}) ==
                     exchange_volume(edges, sources, targets).halo_rows,
                 "other numbers of rows");
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const std::vector<int64_t> wanted =
            local_edges(edges, sources, targets, rank).exchange.recv_counts;
        AIFS_CHECK(std::equal(wanted.begin(), wanted.end(), traffic.rows.begin() + rank * ranks),
                   "other rows of rank ", rank);
      }
    }
  });
}
