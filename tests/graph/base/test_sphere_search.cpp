// SPDX-License-Identifier: Apache-2.0
#include "graph/base/sphere_search.h"

#include <algorithm>

#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

namespace {

std::vector<int32_t> indices(const std::vector<Neighbour>& found) {
  std::vector<int32_t> result;
  for (const Neighbour& neighbour : found)
    result.push_back(neighbour.index);
  return result;
}

// Every third point of a set takes part.
void check_against_tree(const NodeSet& nodes, bool bands) {
  std::vector<int32_t> chosen;
  std::vector<Point<float>> points;
  UnitVectors<float> unit_vector;
  for (size_t n = 0; n < nodes.lat_rad.size(); n += 3) {
    chosen.push_back(static_cast<int32_t>(n));
    points.push_back(unit_vector(nodes.lat_rad[n], nodes.lon_rad[n]));
  }
  const SphereSearch<float> search(nodes.lat_rad, nodes.lon_rad, chosen, 2);
  REQUIRE((search.bands() != nullptr) == bands);
  REQUIRE((search.tree() != nullptr) == !bands);
  REQUIRE(search.num_points() == static_cast<int64_t>(chosen.size()));
  const KdTree<float> tree(points);
  SearchReach reach;
  std::vector<Neighbour> found, expected;
  const auto require_expected = [&] {
    for (Neighbour& neighbour : expected)
      neighbour.index = chosen[static_cast<size_t>(neighbour.index)];
    REQUIRE(indices(found) == indices(expected));
  };
  for (size_t n = 0; n < nodes.lat_rad.size(); n += 11) {
    const auto point = unit_vector(nodes.lat_rad[n], nodes.lon_rad[n]);
    const SpherePlace<float> place{nodes.lat_rad[n], nodes.lon_rad[n], point};
    search.nearest(place, 5, reach, found);
    tree.nearest(point, 5, expected);
    require_expected();
    search.within(place, 0.02, found);
    tree.within(point, 0.02, expected);
    std::sort(expected.begin(), expected.end());
    require_expected();
  }
}

}  // namespace

TEST_CASE("both ways of searching give the answers of the tree", "[sphere_search]") {
  check_against_tree(samples::gaussian_nodes("n", "o32"), /*bands=*/true);
  check_against_tree(samples::random_nodes("n", 4000, 2), /*bands=*/true);
  check_against_tree(samples::lattice_nodes("n", 50, 50), /*bands=*/false);
}
