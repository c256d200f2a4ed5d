// SPDX-License-Identifier: Apache-2.0
#include "graph/post_process.h"

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/edges/edge_attributes.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

// Four data nodes along the equator, two hidden ones; data node 2 has no edge.
Graph small_graph() {
  Graph graph;
  graph.node_sets = {
      {"data", {0.0F, 0.0F, 0.0F, 0.0F}, {0.0F, 0.1F, 0.2F, 6.2F}, {{"number", {1, {0, 1, 2, 3}}}}},
      {"hidden", {0.0F, 0.5F}, {0.0F, 0.1F}, {}}};
  graph.edge_sets = {{"data", "hidden", {3, 1, 0}, {1, 1, 0}, {{"tag", {2, {3, 3, 1, 1, 0, 0}}}}},
                     {"hidden", "data", {0, 1}, {1, 3}, {}}};
  return graph;
}

}  // namespace

TEST_CASE("keeping nodes drops edges at others and renumbers the rest", "[post_process]") {
  Graph graph = small_graph();
  REQUIRE(keep_nodes(graph, "data", {0, 1, 0, 1}) == std::vector<int32_t>{1, 3});
  graph.check();
  REQUIRE(graph.nodes("data").attributes.at("number").values == std::vector<float>{1, 3});
  const EdgeSet& edges = graph.edges("data", "hidden");
  REQUIRE(edges.source_index == std::vector<int32_t>{1, 0});
  REQUIRE(edges.target_index == std::vector<int32_t>{1, 1});
  REQUIRE(edges.attributes.at("tag").values == std::vector<float>{3, 3, 1, 1});
  REQUIRE(graph.edges("hidden", "data").target_index == std::vector<int32_t>{0, 1});
  REQUIRE_THROWS_WITH(keep_nodes(graph, "data", {1}), ContainsSubstring("1 marks"));
}

TEST_CASE("connected nodes are those with an edge", "[post_process]") {
  const Graph graph = small_graph();
  REQUIRE(connected_nodes(graph, "data") == std::vector<uint8_t>{1, 1, 0, 1});
  REQUIRE(connected_nodes(graph, "hidden") == std::vector<uint8_t>{1, 1});
}

TEST_CASE("an area includes its limits and may cross the date line or Greenwich",
          "[post_process]") {
  const std::vector<double> lat{10, 10, -10, 10, 10}, lon{350, 0, 5, 20, 180};
  const NodeSet nodes{"n", radians_from_degrees(lat), radians_from_degrees(lon), {}};
  REQUIRE(nodes_in_area(nodes, {20, -15, 0, 15}) == std::vector<uint8_t>{1, 1, 0, 0, 0});
  REQUIRE(nodes_in_area(nodes, {20, 15, -20, 185}) == std::vector<uint8_t>{0, 0, 0, 1, 1});
  REQUIRE(nodes_in_area(nodes, {90, 0, -90, 360}) == std::vector<uint8_t>{1, 1, 1, 1, 1});
}

TEST_CASE("edges are kept up to a length", "[post_process]") {
  Graph graph = small_graph();
  EdgeSet& edges = graph.edge_sets[0];
  const auto lengths = edge_length<double>(
      {graph.nodes("data"), graph.nodes("hidden"), edges.source_index, edges.target_index});
  const auto keep = edges_up_to(graph, edges, lengths[1] * kEarthRadius_km * 1.000001);
  REQUIRE(keep == std::vector<uint8_t>{0, 1, 1});
  keep_edges(edges, keep);
  REQUIRE(edges.source_index == std::vector<int32_t>{1, 0});
  REQUIRE(edges.attributes.at("tag").values == std::vector<float>{1, 1, 0, 0});
}

TEST_CASE("sorting is stable and carries attributes along", "[post_process]") {
  Graph graph = small_graph();
  EdgeSet& edges = graph.edge_sets[0];
  sort_edges(edges, EdgeEnd::kTarget, false);
  REQUIRE(edges.target_index == std::vector<int32_t>{0, 1, 1});
  REQUIRE(edges.source_index == std::vector<int32_t>{0, 3, 1});
  sort_edges(edges, EdgeEnd::kSource, true);
  REQUIRE(edges.source_index == std::vector<int32_t>{3, 1, 0});
  REQUIRE(edges.attributes.at("tag").values == std::vector<float>{3, 3, 1, 1, 0, 0});
}
