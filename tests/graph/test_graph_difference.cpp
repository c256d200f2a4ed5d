// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_difference.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/rng.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

// Edge k has the attribute values 2 k and 2 k + 1.
Graph sample_graph() {
  Graph graph;
  graph.node_sets = {samples::random_nodes("data", 5, 1), samples::random_nodes("hidden", 3, 2)};
  graph.node_sets[0].attributes["area_weight"] = {1, {1, 2, 3, 4, 5}};
  graph.edge_sets = {{"data", "hidden", {0, 1, 2, 4}, {0, 0, 1, 2}, {}}};
  graph.edge_sets[0].attributes["edge_dirs"] = {2, {0, 1, 2, 3, 4, 5, 6, 7}};
  return graph;
}

}  // namespace

TEST_CASE("a graph does not differ from itself", "[graph_difference]") {
  const GraphDifference difference = difference_of(sample_graph(), sample_graph());
  CHECK(difference.none());
  CHECK(difference.text().empty());
}

TEST_CASE("sets that only one graph has are named", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  b.node_sets.push_back(samples::random_nodes("coarse", 2, 9));
  b.edge_sets[0].target = "coarse";
  const GraphDifference difference = difference_of(a, b);
  REQUIRE(difference.node_sets.size() == 1);
  CHECK(difference.node_sets[0].only_in_b);
  REQUIRE(difference.edge_sets.size() == 2);
  CHECK_THAT(difference.text(), ContainsSubstring("nodes 'coarse': only in B (2 nodes)"));
  CHECK_THAT(difference.text(), ContainsSubstring("edges data->hidden: only in A (4 edges)"));
  CHECK_THAT(difference.text(), ContainsSubstring("edges data->coarse: only in B (4 edges)"));
}

TEST_CASE("nodes at other places are counted, with the farthest", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  b.node_sets[0].lat_rad[1] += 0.25F;
  b.node_sets[0].lat_rad[3] += 0.001F;
  const GraphDifference difference = difference_of(a, b);
  REQUIRE(difference.node_sets.size() == 1);
  CHECK(difference.node_sets[0].num_moved == 2);
  CHECK(difference.node_sets[0].farthest == 1);
  CHECK(difference.node_sets[0].farthest_km == Approx(0.25 * kEarthRadius_km).epsilon(1e-6));
  CHECK(difference_of(a, b, 0.002).node_sets[0].num_moved == 1);
  b.node_sets[0].lat_rad.pop_back();
  b.node_sets[0].lon_rad.pop_back();
  CHECK_THAT(difference_of(a, b).text(), ContainsSubstring("nodes 'data': 5 in A, 4 in B"));
}

TEST_CASE("edges of one graph only are those of the difference of sets", "[graph_difference]") {
  const CounterRng rng(7);
  Graph a = sample_graph(), b = a;
  std::set<std::pair<int32_t, int32_t>> edges[2];
  for (uint64_t k = 0; k < 60; ++k)
    edges[k % 2].emplace(static_cast<int32_t>(5 * rng.uniform(2 * k)),
                         static_cast<int32_t>(3 * rng.uniform(2 * k + 1)));
  const auto fill = [](EdgeSet& set, const std::set<std::pair<int32_t, int32_t>>& from) {
    set = {set.source, set.target, {}, {}, {}};
    for (const auto& [source, target] : from) {
      set.source_index.push_back(source);
      set.target_index.push_back(target);
    }
  };
  edges[0].erase({0, 0});
  edges[1].insert({0, 0});
  fill(a.edge_sets[0], edges[0]);
  fill(b.edge_sets[0], edges[1]);
  int64_t only_a = 0, only_b = 0;
  for (const auto& edge : edges[0])
    only_a += edges[1].count(edge) == 0 ? 1 : 0;
  for (const auto& edge : edges[1])
    only_b += edges[0].count(edge) == 0 ? 1 : 0;
  const GraphDifference difference = difference_of(a, b);
  REQUIRE(difference.edge_sets.size() == 1);
  CHECK(difference.edge_sets[0].num_only_a == only_a);
  CHECK(difference.edge_sets[0].num_only_b == only_b);
  CHECK(difference.edge_sets[0].first_only_b.front().source == 0);
  CHECK_FALSE(difference.edge_sets[0].other_order);
  CHECK_THAT(difference.text(), ContainsSubstring(" only in B (0->0"));
}

TEST_CASE("equal edges in another order differ in nothing else", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  EdgeSet& edges = b.edge_sets[0];
  std::swap(edges.source_index[0], edges.source_index[3]);
  std::swap(edges.target_index[0], edges.target_index[3]);
  edges.attributes["edge_dirs"].values = {6, 7, 2, 3, 4, 5, 0, 1};
  const GraphDifference difference = difference_of(a, b);
  REQUIRE(difference.edge_sets.size() == 1);
  CHECK(difference.edge_sets[0].other_order);
  CHECK(difference.edge_sets[0].attributes.empty());
  CHECK(difference.text() == "edges data->hidden: the same edges in another order\n");
}

TEST_CASE("the largest difference of an attribute is told, with its place", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  b.edge_sets[0].attributes["edge_dirs"].values[5] = 5.5F;
  b.edge_sets[0].attributes["edge_dirs"].values[2] = 2.25F;
  b.node_sets[0].attributes["area_weight"].values[4] = 4.0F;
  const GraphDifference difference = difference_of(a, b);
  REQUIRE(difference.edge_sets.size() == 1);
  CHECK(difference.edge_sets[0].attributes[0].largest == 0.5);
  CHECK(difference.edge_sets[0].attributes[0].row == 2);
  CHECK(difference.node_sets[0].attributes[0].largest == 1.0);
  CHECK(difference.node_sets[0].attributes[0].row == 4);
  CHECK_THAT(difference.text(),
             ContainsSubstring("attribute 'edge_dirs': largest difference 0.5, at edge 2"));
  CHECK(difference_of(a, b, 0.5).edge_sets.empty());
  CHECK(difference_of(a, b, 1.0).none());
}

TEST_CASE("attributes of one graph only, of other widths and NaN differ", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  b.node_sets[0].attributes["area_weight"].values[0] = nan;
  b.node_sets[1].attributes["mask"] = {1, {0, 0, 0}};
  b.edge_sets[0].attributes["edge_dirs"] = {1, {0, 0, 0, 0}};
  const std::string text = difference_of(a, b).text();
  CHECK_THAT(text, ContainsSubstring("attribute 'area_weight': largest difference inf, at node 0"));
  CHECK_THAT(text, ContainsSubstring("nodes 'hidden' attribute 'mask': only in B"));
  CHECK_THAT(text, ContainsSubstring("attribute 'edge_dirs': width 2 in A, 1 in B"));
  CHECK(difference_of(b, b).none());
}

TEST_CASE("sets in another order differ", "[graph_difference]") {
  const Graph a = sample_graph();
  Graph b = a;
  std::swap(b.node_sets[0], b.node_sets[1]);
  CHECK(difference_of(a, b).other_set_order);
  CHECK_FALSE(difference_of(a, b).none());
}
