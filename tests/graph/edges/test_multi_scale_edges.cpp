// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/multi_scale_edges.h"

#include <algorithm>
#include <set>

#include "core/check.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

std::set<std::pair<int32_t, int32_t>> as_set(const EdgeList& edges) {
  std::set<std::pair<int32_t, int32_t>> result;
  for (size_t e = 0; e < edges.source_index.size(); ++e)
    result.emplace(edges.source_index[e], edges.target_index[e]);
  return result;
}

int64_t largest_in_degree(const EdgeList& edges, int64_t num_nodes) {
  std::vector<int64_t> degree(static_cast<size_t>(num_nodes), 0);
  for (const int32_t target : edges.target_index)
    ++degree[static_cast<size_t>(target)];
  return *std::max_element(degree.begin(), degree.end());
}

// A limited area of tri nodes around (0.7, 0.2).
AreaMask area(double margin_km) {
  const std::vector<float> lat{0.7F}, lon{0.2F};
  return AreaMask(lat, lon, margin_km);
}

}  // namespace

TEST_CASE("levels 1 to R have 80 (4^R - 1) edges, levels 0 to R 20 (4^(R+1) - 1)",
          "[multi_scale_edges]") {
  for (int64_t r = 1; r <= 6; ++r) {
    const TriNodes nodes = tri_nodes(r);
    const int64_t power = int64_t{1} << (2 * r);
    const EdgeList edges = multi_scale_edges(nodes, {1, level_range(1, r)});
    REQUIRE(edges.num_edges() == 80 * (power - 1));
    REQUIRE(multi_scale_edges(nodes, {1, level_range(0, r)}).num_edges() == 20 * (4 * power - 1));
    if (r >= 2) REQUIRE(largest_in_degree(edges, nodes.num_nodes()) == 6 * r);
  }
}

TEST_CASE("edges go both ways and occur once", "[multi_scale_edges]") {
  const EdgeList edges = multi_scale_edges(tri_nodes(3), {1, level_range(0, 3)});
  const auto set = as_set(edges);
  REQUIRE(static_cast<int64_t>(set.size()) == edges.num_edges());
  for (const auto& [a, b] : set)
    REQUIRE(set.count({b, a}) == 1);
}

TEST_CASE("levels come in the order asked for", "[multi_scale_edges]") {
  const TriNodes nodes = tri_nodes(2);
  const EdgeList one = multi_scale_edges(nodes, {1, {1}}), two = multi_scale_edges(nodes, {1, {2}});
  const EdgeList both = multi_scale_edges(nodes, {1, {2, 1}});
  REQUIRE(both.num_edges() == one.num_edges() + two.num_edges());
  REQUIRE(std::equal(two.source_index.begin(), two.source_index.end(), both.source_index.begin()));
  REQUIRE(
      std::equal(one.source_index.rbegin(), one.source_index.rend(), both.source_index.rbegin()));
}

TEST_CASE("more hops have the counts of the reference", "[multi_scale_edges]") {
  REQUIRE(multi_scale_edges(tri_nodes(3), {2, level_range(1, 3)}).num_edges() == 13740);
  REQUIRE(multi_scale_edges(tri_nodes(3), {3, level_range(1, 3)}).num_edges() == 28140);
  REQUIRE(multi_scale_edges(tri_nodes(5), {2, level_range(1, 5)}).num_edges() == 224820);
  REQUIRE(multi_scale_edges(tri_nodes(3), {4, {1, 3}}).num_edges() == 38820);
}

TEST_CASE("two hops are the paths of two edges", "[multi_scale_edges]") {
  const TriNodes nodes = tri_nodes(2);
  const auto steps = as_set(multi_scale_edges(nodes, {1, {2}}));
  auto expected = steps;
  for (const auto& [a, b] : steps) {
    for (const auto& [c, d] : steps) {
      if (b == c && a != d) expected.emplace(a, d);
    }
  }
  REQUIRE(as_set(multi_scale_edges(nodes, {2, {2}})) == expected);
}

TEST_CASE("a limited area keeps the edges between its nodes", "[multi_scale_edges]") {
  const TriNodes nodes = limited_area_tri_nodes(6, area(1000));
  REQUIRE(nodes.num_nodes() == 266);
  REQUIRE(multi_scale_edges(nodes, {1, level_range(1, 6)}).num_edges() == 1878);
}

TEST_CASE("a stretched mesh has the edges of the reference", "[multi_scale_edges]") {
  const std::vector<float> origin{0.0F};
  const TriNodes nodes = stretched_tri_nodes(4, 6, AreaMask(origin, origin, 400));
  REQUIRE(multi_scale_edges(nodes, {1, level_range(0, 6)}).num_edges() == 20688);
  REQUIRE(multi_scale_edges(nodes, {1, level_range(1, 6)}).num_edges() == 20628);
  REQUIRE(multi_scale_edges(nodes, {1, {4, 6}}).num_edges() == 15552);
  REQUIRE(multi_scale_edges(nodes, {1, {6}}).num_edges() == 192);
}

TEST_CASE("levels above the mesh stand for the nearest nodes, with several hops only",
          "[multi_scale_edges]") {
  const TriNodes nodes = tri_nodes(2);
  const auto with = as_set(multi_scale_edges(nodes, {2, {1, 2, 3}}));
  const auto without = as_set(multi_scale_edges(nodes, {2, {1, 2}}));
  REQUIRE(std::includes(with.begin(), with.end(), without.begin(), without.end()));
  REQUIRE_THROWS_WITH(multi_scale_edges(nodes, {1, {3}}), ContainsSubstring("finer than the mesh"));
  REQUIRE_THROWS_WITH(multi_scale_edges(limited_area_tri_nodes(4, area(900)), {2, {5}}),
                      ContainsSubstring("only a part of the sphere"));
}

TEST_CASE("impossible levels and hops are refused", "[multi_scale_edges]") {
  const TriNodes nodes = tri_nodes(1);
  REQUIRE_THROWS_WITH(multi_scale_edges(nodes, {1, {}}), ContainsSubstring("at least one level"));
  REQUIRE_THROWS_WITH(multi_scale_edges(nodes, {1, {-1}}), ContainsSubstring("got -1"));
  REQUIRE_THROWS_WITH(multi_scale_edges(nodes, {0, {1}}), ContainsSubstring("x_hops"));
}
