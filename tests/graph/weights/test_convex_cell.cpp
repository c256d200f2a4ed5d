// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/convex_cell.h"

#include <cmath>
#include <set>

#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

TEST_CASE("cuts leave the intersection of half-planes", "[convex_cell]") {
  ConvexCell cell;
  cell.reset(10);
  REQUIRE(cell.touches_border());
  REQUIRE(cell.radius2() == 200);
  cell.cut(1, 0, 1, 0);   // u <= 1
  cell.cut(-1, 0, 1, 1);  // u >= -1
  cell.cut(0, 1, 2, 2);
  REQUIRE(cell.touches_border());
  cell.cut(0, -1, 2, 3);
  REQUIRE_FALSE(cell.touches_border());
  REQUIRE(cell.vertices().size() == 4);
  REQUIRE(cell.radius2() == 5);
  cell.cut(1, 1, 5, 4);  // outside
  REQUIRE(cell.vertices().size() == 4);
  cell.cut(1, 1, 2, 5);  // takes a corner
  REQUIRE(cell.vertices().size() == 5);
  std::set<int32_t> edges;
  for (const auto& vertex : cell.vertices())
    edges.insert(vertex.edge);
  REQUIRE(edges == std::set<int32_t>{0, 1, 2, 3, 5});
}

TEST_CASE("a cut through everything leaves nothing", "[convex_cell]") {
  ConvexCell cell;
  cell.reset(1);
  cell.cut(1, 0, -2, 0);
  REQUIRE(cell.vertices().empty());
  REQUIRE_FALSE(cell.touches_border());
}

TEST_CASE("neighbours are offered until none can matter", "[convex_cell]") {
  const NodeSet nodes = samples::random_nodes("n", 3000, 1);
  const auto points = unit_vectors<double>(nodes.lat_rad, nodes.lon_rad);
  const KdTree<double> tree(points);
  std::vector<Neighbour> found;
  for (const double reach2 : {0.0, 1e-3, 0.05, 5.0}) {
    std::set<int32_t> seen;
    cut_by_neighbours(tree, points[7], found, [&](const Neighbour& neighbour) {
      seen.insert(neighbour.index);
      return reach2;
    });
    for (size_t i = 0; i < points.size(); ++i) {
      if (squared_distance(points[7], points[i]) < reach2)
        REQUIRE(seen.count(static_cast<int32_t>(i)) == 1);
    }
    if (reach2 < 1e-2) REQUIRE(seen.size() < 64);
  }
}
