// SPDX-License-Identifier: Apache-2.0
#include "data/combine/nearest_points.h"

#include <algorithm>
#include <limits>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

double squared(const Point& a, const Point& b) {
  return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
         (a[2] - b[2]) * (a[2] - b[2]);
}

}  // namespace

TEST_CASE("the nearest points are those of brute force", "[nearest_points]") {
  Pcg64 rng(4);
  for (const size_t count : {1, 2, 16, 17, 500}) {
    for (const bool is_lattice : {false, true}) {  // with many equal coordinates and distances
      std::vector<Point> points(count);
      for (Point& point : points) {
        for (double& x : point)
          x = is_lattice ? rng.next_bounded(4) : rng.next_double();
      }
      const NearestPoints tree(points);
      for (int trial = 0; trial < 50; ++trial) {
        Point at;
        for (double& x : at)
          x = is_lattice ? rng.next_bounded(4) : 1.4 * rng.next_double() - 0.2;
        const size_t k = 1 + rng.next_bounded(7);
        const double limit = trial % 3 == 0 ? 0.3 : std::numeric_limits<double>::infinity();
        std::vector<double> expected;
        for (const Point& point : points) {
          if (squared(point, at) < limit) expected.push_back(squared(point, at));
        }
        std::sort(expected.begin(), expected.end());
        expected.resize(std::min(expected.size(), k));
        const auto found = tree.query(at, k, limit);
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          REQUIRE(found[i].distance2 == expected[i]);
          REQUIRE(squared(points[static_cast<size_t>(found[i].index)], at) == expected[i]);
        }
      }
    }
  }
}

TEST_CASE("points that are all the same are found", "[nearest_points]") {
  const NearestPoints tree(std::vector<Point>(40, Point{1.0, 2.0, 3.0}));
  REQUIRE(tree.query({1.0, 2.0, 4.0}, 5, 2.0).size() == 5);
  REQUIRE(tree.query({1.0, 2.0, 4.0}, 5, 1.0).empty());
}

TEST_CASE("unit vectors point to the poles and along the equator", "[nearest_points]") {
  const std::vector<double> latitudes{90.0, 0.0, 0.0}, longitudes{123.0, 0.0, 90.0};
  const std::vector<Point> points = unit_vectors(latitudes, longitudes);
  REQUIRE(squared(points[0], {0, 0, 1}) < 1e-30);
  REQUIRE(squared(points[1], {1, 0, 0}) < 1e-30);
  REQUIRE(squared(points[2], {0, 1, 0}) < 1e-30);
}
