// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_slice.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "graph/base/parallel_for.h"
#include "graph/builder.h"
#include "tests/graph/graph_options.h"
#include "tests/support/catch.h"
#include "tests/support/thread_peers.h"

using namespace aifs;
using namespace aifs::graph;
using test::run_peers;

namespace {

const std::vector<int64_t> kRanks{1, 2, 3, 5, 8};

// Some tens of blocks of edges, between two sets and within both.
const Graph& whole_graph() {
  static const Graph graph = build_graph(
      samples::parsed(R"({"grid": "o24", "hidden": {"kind": "tri", "refinement": 3}})"), {});
  return graph;
}

void append(Graph& graph, const GraphSlice& slice) {
  for (size_t i = 0; i < graph.edge_sets.size(); ++i) {
    EdgeSet& all = graph.edge_sets[i];
    const EdgeSet& more = slice.graph.edge_sets[i];
    all.source_index.insert(all.source_index.end(), more.source_index.begin(),
                            more.source_index.end());
    all.target_index.insert(all.target_index.end(), more.target_index.begin(),
                            more.target_index.end());
    for (const auto& [name, attribute] : more.attributes) {
      std::vector<float>& values = all.attributes.at(name).values;
      values.insert(values.end(), attribute.values.begin(), attribute.values.end());
    }
  }
}

// Calls body(slice, peers) on every rank of a divided graph.
void on_slices(const Graph& graph, int64_t ranks,
               const std::function<void(const GraphSlice&, Peers&)>& body) {
  run_peers(ranks, [&](Peers& peers) { body(slice_of(graph, peers.rank(), peers.size()), peers); });
}

}  // namespace

TEST_CASE("ranges cover all edges, are even up to a block and the last one, and begin with a block",
          "[graph_slice]") {
  for (const int64_t total : {0, 1, 1023, 1024, 1025, 50000, 1 << 20}) {
    for (const int64_t size : {1, 2, 3, 7, 64}) {
      int64_t next = 0, least = total, most = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const EdgeRange range = edge_range(total, rank, size);
        REQUIRE(range.begin == next);
        REQUIRE((range.begin % kBlockItems == 0 || range.begin == total));
        REQUIRE(range.total == total);
        next = range.end;
        least = std::min(least, range.size());
        most = std::max(most, range.size());
      }
      REQUIRE(next == total);
      REQUIRE(most - least < 2 * kBlockItems);  // the last block may be short
    }
  }
}

TEST_CASE("the slices of all ranks are the graph, bit for bit", "[graph_slice]") {
  const Graph& graph = whole_graph();
  for (const int64_t ranks : kRanks) {
    Graph joined;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const GraphSlice slice = slice_of(graph, rank, ranks);
      REQUIRE(slice.graph.node_sets.size() == graph.node_sets.size());
      if (rank == 0) {
        joined = slice.graph;
      } else {
        append(joined, slice);
      }
    }
    REQUIRE(joined.content_hash() == graph.content_hash());
  }
}

TEST_CASE("ranks with slices find the hash of the whole", "[graph_slice]") {
  Graph graph = whole_graph();
  graph.edge_sets.push_back({"hidden", "data", {}, {}, {{"none", {3, {}}}}});  // no edge at all
  const std::string hash = graph.content_hash();
  for (const int64_t ranks : kRanks)
    on_slices(graph, ranks, [&](const GraphSlice& slice, Peers& peers) {
      if (content_hash(slice, peers) != hash) throw Error("another hash");
    });
  const Graph other = [&] {
    Graph changed = graph;
    ++changed.edge_sets[2].source_index.back();
    return changed;
  }();
  on_slices(other, 3, [&](const GraphSlice& slice, Peers& peers) {
    if (content_hash(slice, peers) == hash) throw Error("the hash has not seen a change");
  });
}

TEST_CASE("ranks with slices count degrees and lengths as one does", "[graph_slice]") {
  Graph graph = whole_graph();
  EdgeSet& encoder = graph.edge_sets[0];  // without its last edges some nodes have none
  encoder.source_index.resize(encoder.source_index.size() - 500);
  encoder.target_index.resize(encoder.source_index.size());
  for (auto& [name, attribute] : encoder.attributes)
    attribute.values.resize(encoder.source_index.size() * static_cast<size_t>(attribute.width));
  GraphReport wanted = report_of(graph);
  measure_lengths(graph, wanted);
  REQUIRE_FALSE(wanted.warnings.empty());
  for (const int64_t ranks : kRanks) {
    on_slices(graph, ranks, [&](const GraphSlice& slice, Peers& peers) {
      const GraphReport report = report_of(slice, peers);
      if (report.text() != wanted.text() || report.edges_text() != wanted.edges_text())
        throw Error(report.edges_text());
      if (report.warnings != wanted.warnings || report.notes != wanted.notes)
        throw Error("other nodes without edges");
      for (size_t i = 0; i < wanted.edge_sets.size(); ++i)
        if (report.edge_sets[i].length_km.mean != wanted.edge_sets[i].length_km.mean)
          throw Error("another mean length");
    });
  }
}

TEST_CASE("ranks with slices divide nodes as one does", "[graph_slice]") {
  const Graph& graph = whole_graph();
  for (const HiddenOrder order : {HiddenOrder::kAuto, HiddenOrder::kLatitude, HiddenOrder::kMesh}) {
    for (const int64_t ranks : kRanks) {
      const GraphPartition wanted = make_partition(graph, ranks, order, 4);
      on_slices(graph, ranks, [&](const GraphSlice& slice, Peers& peers) {
        const GraphPartition partition = make_partition(slice, order, 4, peers);
        for (const NodeSet& nodes : graph.node_sets)
          for (int64_t rank = 0; rank < ranks; ++rank)
            if (partition.of(nodes.name).owned(rank) != wanted.of(nodes.name).owned(rank))
              throw Error("other nodes of " + nodes.name);
      });
    }
  }
}

TEST_CASE("edges are whole again on every rank where they are asked for", "[graph_slice]") {
  const Graph& graph = whole_graph();
  on_slices(graph, 3, [&](const GraphSlice& slice, Peers& peers) {
    Graph gathered = graph;
    gathered.edge_sets[1] = whole_edges(slice, 1, peers);
    if (gathered.content_hash() != graph.content_hash()) throw Error("other edges");
  });
}
