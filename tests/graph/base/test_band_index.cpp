// SPDX-License-Identifier: Apache-2.0
#include "graph/base/band_index.h"

#include <algorithm>

#include "graph/nodes/tri_nodes.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

namespace {

NodeSet tri_node_set(int64_t refinement) {
  const TriNodes nodes = tri_nodes(refinement);
  return {"tri", nodes.lat_rad, nodes.lon_rad, {}};
}

// Around both poles, the date line and the first meridian, also turned by whole circles.
NodeSet corner_nodes() {
  NodeSet nodes;
  for (const double lat : {-90.0, -89.99, -60.0, 0.0, 1e-7, 45.0, 89.5, 90.0}) {
    for (const double lon :
         {-180.0, -179.999, -1e-6, 0.0, 1e-6, 90.0, 179.999, 180.0, 359.9999, 360.0, 539.0}) {
      nodes.lat_rad.push_back(static_cast<float>(lat * kPi / 180));
      nodes.lon_rad.push_back(static_cast<float>(lon * kPi / 180));
    }
  }
  return nodes;
}

// All points of `numbers` by (distance, number).
template <class Real>
std::vector<Neighbour> brute_force(const NodeSet& nodes, const std::vector<int32_t>& numbers,
                                   const Point<Real>& query) {
  const auto points = unit_vectors<Real>(nodes.lat_rad, nodes.lon_rad);
  std::vector<Neighbour> all;
  for (const int32_t n : numbers)
    all.push_back({squared_distance(query, points[static_cast<size_t>(n)]), n});
  std::sort(all.begin(), all.end());
  return all;
}

void require_equal(const std::vector<Neighbour>& found, const std::vector<Neighbour>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].index == expected[i].index);
    REQUIRE(found[i].distance2 == expected[i].distance2);
  }
}

template <class Real>
void check_against_brute_force(const NodeSet& nodes, const NodeSet& asking,
                               const std::vector<int32_t>& chosen = {}) {
  const BandIndex<Real> index(nodes.lat_rad, nodes.lon_rad, chosen, 2);
  std::vector<int32_t> numbers = chosen;
  for (int32_t n = 0; chosen.empty() && n < nodes.num_nodes(); ++n)
    numbers.push_back(n);
  REQUIRE(index.num_points() == static_cast<int64_t>(numbers.size()));
  const auto queries = unit_vectors<Real>(asking.lat_rad, asking.lon_rad);
  SearchReach reach;
  std::vector<Neighbour> found;
  for (size_t q = 0; q < queries.size(); ++q) {
    const SpherePlace<Real> place{asking.lat_rad[q], asking.lon_rad[q], queries[q]};
    const auto all = brute_force(nodes, numbers, queries[q]);
    for (const size_t k : {1, 3, 14}) {
      index.nearest(place, static_cast<int64_t>(k), reach, found);
      require_equal(found, {all.begin(), all.begin() + static_cast<int>(std::min(k, all.size()))});
    }
    // On the rim of a found point, and far away.
    for (const double distance2 : {all[std::min<size_t>(all.size() - 1, 9)].distance2, 1.7, 4.0}) {
      index.within(place, distance2, found);
      std::sort(found.begin(), found.end());
      auto expected = all;
      std::erase_if(expected, [&](const Neighbour& n) { return n.distance2 > distance2; });
      require_equal(found, expected);
    }
  }
}

}  // namespace

TEST_CASE("searches in bands agree with brute force", "[band_index]") {
  const NodeSet random = samples::random_nodes("q", 60, 4), corners = corner_nodes();
  for (const NodeSet& asking : {random, corners}) {
    for (const int64_t count : {1, 2, 9, 500})
      check_against_brute_force<float>(samples::random_nodes("n", count, 3), asking);
    check_against_brute_force<double>(samples::random_nodes("n", 300, 5), asking);
    check_against_brute_force<float>(samples::gaussian_nodes("n", "o16"), asking);
    check_against_brute_force<float>(samples::gaussian_nodes("n", "f8"), asking);
    check_against_brute_force<double>(tri_node_set(3), asking);
    check_against_brute_force<float>(samples::lattice_nodes("n", 12, 15), asking);
    check_against_brute_force<float>(corners, asking);
  }
}

TEST_CASE("equal distances in bands are ordered by number", "[band_index]") {
  const NodeSet grid = samples::gaussian_nodes("n", "o8");
  check_against_brute_force<float>(grid, grid);
  check_against_brute_force<float>(samples::lattice_nodes("n", 9, 9),
                                   samples::lattice_nodes("q", 9, 9));
}

TEST_CASE("chosen points keep their numbers", "[band_index]") {
  std::vector<int32_t> chosen;
  for (int32_t n = 0; n < 1600; n += 1 + n % 3)
    chosen.push_back(n);
  check_against_brute_force<float>(samples::gaussian_nodes("n", "o16"),
                                   samples::random_nodes("q", 60, 9), chosen);
}

TEST_CASE("what was searched before does not matter", "[band_index]") {
  const NodeSet nodes = samples::gaussian_nodes("n", "o32"),
                asking = samples::random_nodes("q", 200, 6);
  const BandIndex<float> index(nodes.lat_rad, nodes.lon_rad, {}, 1);
  const auto queries = unit_vectors<float>(asking.lat_rad, asking.lon_rad);
  std::vector<Neighbour> one, other;
  for (const double before : {1e-12, 1e-3, 0.5, 4.0}) {
    for (size_t q = 0; q < queries.size(); ++q) {
      SearchReach fresh, used{before};
      const SpherePlace<float> place{asking.lat_rad[q], asking.lon_rad[q], queries[q]};
      index.nearest(place, 3, fresh, one);
      index.nearest(place, 3, used, other);
      require_equal(one, other);
    }
  }
}

TEST_CASE("even grids are not crowded, limited areas are", "[band_index]") {
  const auto crowding = [](const NodeSet& nodes) {
    return BandIndex<float>::crowding(nodes.lat_rad, nodes.lon_rad, {}, 1);
  };
  for (const char* grid : {"o32", "n32", "o96", "n320"})
    CHECK(crowding(samples::gaussian_nodes("n", grid)) < 2.5);
  CHECK(crowding(samples::gaussian_nodes("n", "f160")) < 6);
  CHECK(crowding(tri_node_set(6)) < 2.5);
  CHECK(crowding(samples::random_nodes("n", 1000000, 1)) < 2.5);
  CHECK(crowding(samples::lattice_nodes("n", 40, 40)) > 20);
}
