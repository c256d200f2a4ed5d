// SPDX-License-Identifier: Apache-2.0
#include "graph/base/graph.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

Graph small_graph() {
  Graph graph;
  graph.node_sets = {{"data", {0.1F, 0.2F}, {1.0F, 2.0F}, {{"area_weight", {1, {0.5F, 1.0F}}}}},
                     {"hidden", {0.3F}, {3.0F}, {}}};
  graph.edge_sets = {{"data", "hidden", {0, 1}, {0, 0}, {{"edge_dirs", {2, {1, 2, 3, 4}}}}}};
  return graph;
}

}  // namespace

TEST_CASE("sets are found by name, and missing ones are told with what there is", "[graph]") {
  const Graph graph = small_graph();
  REQUIRE(graph.nodes("data").num_nodes() == 2);
  REQUIRE(graph.edges("data", "hidden").num_edges() == 2);
  try {
    graph.nodes("hiden");
    FAIL("there are no such nodes");
  } catch (const Error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("'hiden'"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("'data', 'hidden'"));
  }
  REQUIRE_THROWS_WITH(graph.edges("hidden", "data"), ContainsSubstring("hidden->data"));
}

TEST_CASE("the hash changes with every part of the content", "[graph]") {
  const std::string hash = small_graph().content_hash();
  REQUIRE(small_graph().content_hash() == hash);
  const auto changed = [&](auto change) {
    Graph graph = small_graph();
    change(graph);
    return graph.content_hash() != hash;
  };
  REQUIRE(changed([](Graph& g) { g.node_sets[0].name = "date"; }));
  REQUIRE(changed([](Graph& g) { g.node_sets[0].lon_rad[1] = 2.5F; }));
  REQUIRE(changed([](Graph& g) { g.node_sets[0].attributes["area_weight"].values[0] = 0.6F; }));
  REQUIRE(changed([](Graph& g) { g.edge_sets[0].source_index[0] = 1; }));
  REQUIRE(changed([](Graph& g) { g.edge_sets[0].attributes["edge_dirs"].width = 4; }));
}

TEST_CASE("edges to missing nodes and uneven attributes are found", "[graph]") {
  Graph graph = small_graph();
  graph.check();
  graph.edge_sets[0].source_index[1] = 2;
  REQUIRE_THROWS_WITH(graph.check(), ContainsSubstring("edge 1 joins 2 and 0"));
  graph = small_graph();
  graph.node_sets[0].attributes["area_weight"].values.pop_back();
  REQUIRE_THROWS_WITH(graph.check(), ContainsSubstring("'area_weight'"));
}
