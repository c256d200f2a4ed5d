// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/graph_tensors.h"
#include "model/nodes/local_edges.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;

namespace {

// Edges with a known order: attribute "number" is the position in the list.
graph::EdgeSet numbered_edges() {
  graph::EdgeSet edges;
  edges.source = "data";
  edges.target = "hidden";
  edges.source_index = {0, 1, 2, 0, 1};
  edges.target_index = {2, 0, 2, 0, 2};
  edges.attributes["number"] = {1, {0, 1, 2, 3, 4}};
  edges.attributes["pair"] = {2, {0, 10, 1, 11, 2, 12, 3, 13, 4, 14}};
  return edges;
}

}  // namespace

TEST_CASE("edges are sorted by target, stably, and attributes go with them", "[graph_tensors]") {
  const EdgeTensors edges =
      make_edge_tensors(numbered_edges(), 3, 3, {"pair", "number"}, at::kDouble);
  REQUIRE(at::equal(edges.order, at::tensor({1, 3, 0, 2, 4}, at::kLong)));
  REQUIRE(at::equal(edges.index->source, at::tensor({1, 0, 0, 2, 1}, at::kInt)));
  REQUIRE(at::equal(edges.index->target, at::tensor({0, 0, 2, 2, 2}, at::kInt)));
  REQUIRE(edges.attribute_width() == 3);
  REQUIRE(edges.attributes.scalar_type() == at::kDouble);
  REQUIRE(at::equal(edges.attributes.select(1, 2), edges.order.to(at::kDouble)));
  REQUIRE(at::equal(edges.attributes.select(1, 1), edges.order.to(at::kDouble) + 10));
}

TEST_CASE("a missing attribute is named with its edges", "[graph_tensors]") {
  REQUIRE_THROWS_WITH(make_edge_tensors(numbered_edges(), 3, 3, {"length"}, at::kFloat),
                      ContainsSubstring("edges data->hidden have no attribute 'length'"));
}

TEST_CASE("a graph becomes coordinates and three edge sets", "[graph_tensors]") {
  const graph::Graph graph = test::random_graph({9, 4, 20, 12, 18}, 5);
  const auto tensors = GraphTensors::create(graph, {"edge_length", "edge_dirs"}, at::kFloat);
  REQUIRE(tensors.num_nodes("data") == 9);
  REQUIRE(tensors.num_nodes("hidden") == 4);
  REQUIRE(tensors.latlon_rad("data")[3][1].item<float>() == graph.nodes("data").lon_rad[3]);
  REQUIRE(tensors.edges("data", "hidden").index->num_sources == 9);
  REQUIRE(tensors.edges("data", "hidden").index->num_targets == 4);
  REQUIRE(tensors.edges("hidden", "hidden").index->num_edges == 12);
  REQUIRE(tensors.edges("hidden", "data").index->num_sources == 4);
  REQUIRE(tensors.edges("hidden", "data").attributes.sizes() == at::IntArrayRef{18, 3});
}

TEST_CASE("what a graph lacks is said when it is asked for", "[graph_tensors]") {
  const graph::Graph graph = test::random_graph({9, 4, 20, 12, 18}, 5);
  const auto tensors = GraphTensors::create(graph, {"weight"}, at::kFloat);
  REQUIRE_FALSE(tensors.has_edges("data", "hidden"));
  REQUIRE_THROWS_WITH(tensors.edges("data", "hidden"), ContainsSubstring("no attribute 'weight'"));
  REQUIRE_THROWS_WITH(tensors.edges("data", "data"), ContainsSubstring("no edges data->data"));
  REQUIRE_THROWS_WITH(tensors.latlon_rad("mesh"), ContainsSubstring("no nodes 'mesh'"));
}

TEST_CASE("repeated edges are made once per number of copies", "[graph_tensors]") {
  const auto base = test::random_edge_index(5, 3, 10, 6);
  EdgeTensors edges;
  edges.index = base;
  const LocalEdges repeated(edges);
  REQUIRE(repeated.index(1) == base);
  REQUIRE(repeated.index(2)->num_edges == 20);
  REQUIRE(repeated.index(2) == repeated.index(2));
  REQUIRE(repeated.index(3) != repeated.index(2));
}
