// SPDX-License-Identifier: Apache-2.0
#include "graph/base/kd_tree.h"

#include <algorithm>

#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

namespace {

// All points by (distance, index).
template <class Real>
std::vector<Neighbour> brute_force(const std::vector<Point<Real>>& points,
                                   const Point<Real>& query) {
  std::vector<Neighbour> all;
  for (size_t i = 0; i < points.size(); ++i)
    all.push_back({squared_distance(query, points[i]), static_cast<int32_t>(i)});
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int32_t> indices(const std::vector<Neighbour>& found) {
  std::vector<int32_t> result;
  for (const Neighbour& neighbour : found)
    result.push_back(neighbour.index);
  return result;
}

template <class Real>
void check_against_brute_force(const NodeSet& nodes, const NodeSet& asking) {
  const auto points = unit_vectors<Real>(nodes.lat_rad, nodes.lon_rad);
  const auto queries = unit_vectors<Real>(asking.lat_rad, asking.lon_rad);
  const KdTree<Real> tree(points);
  std::vector<Neighbour> found;
  for (const auto& query : queries) {
    auto expected = brute_force(points, query);
    const double distance2 = expected[std::min<size_t>(expected.size() - 1, 20)].distance2;
    tree.nearest(query, 7, found);
    auto first = indices(expected);
    first.resize(std::min<size_t>(first.size(), 7));
    REQUIRE(indices(found) == first);
    tree.within(query, distance2, found);
    std::sort(found.begin(), found.end());
    std::erase_if(expected, [&](const Neighbour& n) { return n.distance2 > distance2; });
    REQUIRE(indices(found) == indices(expected));
  }
}

}  // namespace

TEST_CASE("searches agree with brute force on random points", "[kd_tree]") {
  for (const int64_t count : {1, 2, 8, 9, 17, 700}) {
    const NodeSet nodes = samples::random_nodes("n", count, 3),
                  asking = samples::random_nodes("q", 50, 4);
    check_against_brute_force<float>(nodes, asking);
    check_against_brute_force<double>(nodes, asking);
  }
}

TEST_CASE("equal distances are ordered by index", "[kd_tree]") {
  check_against_brute_force<float>(samples::lattice_nodes("n", 12, 15),
                                   samples::lattice_nodes("q", 5, 5));
  check_against_brute_force<float>(samples::gaussian_nodes("n", "o8"),
                                   samples::gaussian_nodes("q", "o8"));
  const std::vector<Point<float>> same(30, Point<float>{0.5F, 0.5F, 0.5F});
  std::vector<Neighbour> found;
  KdTree<float>(same).nearest({0, 0, 0}, 3, found);
  REQUIRE(indices(found) == std::vector<int32_t>{0, 1, 2});
}

TEST_CASE("answers do not depend on the number of threads", "[kd_tree]") {
  const NodeSet nodes = samples::random_nodes("n", 20000, 5),
                asking = samples::random_nodes("q", 5000, 6);
  const auto points = unit_vectors<float>(nodes.lat_rad, nodes.lon_rad);
  const auto queries = unit_vectors<float>(asking.lat_rad, asking.lon_rad);
  const KdTree<float> one(points, 1), four(points, 4);
  REQUIRE(one.nearest(queries, 5, 1).index == four.nearest(queries, 5, 3).index);
  const auto a = one.within(queries, 1e-3, 6, 1), b = four.within(queries, 1e-3, 6, 4);
  REQUIRE(a.offset == b.offset);
  REQUIRE(a.index == b.index);
}

TEST_CASE("a cap keeps the nearest", "[kd_tree]") {
  const NodeSet nodes = samples::random_nodes("n", 500, 7),
                asking = samples::random_nodes("q", 20, 8);
  const auto points = unit_vectors<float>(nodes.lat_rad, nodes.lon_rad);
  const auto queries = unit_vectors<float>(asking.lat_rad, asking.lon_rad);
  const KdTree<float> tree(points);
  REQUIRE(tree.within(queries, 4.0, 9, 1).index == tree.nearest(queries, 9, 1).index);
}

TEST_CASE("a radius includes its rim", "[kd_tree]") {
  const KdTree<float> tree({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}});
  std::vector<Neighbour> found;
  tree.within({0, 0, 0}, 1.0, found);
  REQUIRE(found.size() == 2);
  tree.within({0, 0, 0}, 0.9999, found);
  REQUIRE(found.size() == 1);
}

TEST_CASE("few points give few neighbours, none give none", "[kd_tree]") {
  std::vector<Neighbour> found;
  KdTree<float>(std::vector<Point<float>>{}).nearest({0, 0, 0}, 3, found);
  REQUIRE(found.empty());
  KdTree<float>(std::vector<Point<float>>{{1, 0, 0}}).nearest({0, 0, 0}, 3, found);
  REQUIRE(found.size() == 1);
  const auto lists = KdTree<double>(std::vector<Point<double>>{}).within({{0, 0, 0}}, 4.0, 8, 1);
  REQUIRE(lists.num_queries() == 1);
  REQUIRE(lists.index.empty());
}
