// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/healpix.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "graph/weights/area_weights.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

TEST_CASE("resolution r has 12 * 4^r pixels on 4 * 2^r - 1 rings", "[healpix]") {
  for (const int64_t r : {1, 2, 4}) {
    const Coordinates pixels = healpix_coordinates(r);
    REQUIRE(pixels.num_points() == healpix_pixels(r));
    std::map<int64_t, int64_t> rings;  // by latitude in units of 1e-9 degrees
    for (const double lat : pixels.lat_deg)
      ++rings[std::llround(lat * 1e9)];
    const int64_t side = int64_t{1} << r;
    REQUIRE(static_cast<int64_t>(rings.size()) == 4 * side - 1);
    REQUIRE(rings.begin()->second == 4);
    REQUIRE(rings[0] == 4 * side);
    for (const double lon : pixels.lon_deg) {
      REQUIRE(lon >= 0);
      REQUIRE(lon < 360);
    }
  }
}

TEST_CASE("pixel 0 of resolution 1 is where it should be", "[healpix]") {
  const Coordinates pixels = healpix_coordinates(1);
  REQUIRE(pixels.lon_deg[0] == Approx(45.0).epsilon(1e-14));
  REQUIRE(std::sin(pixels.lat_deg[0] * kPi / 180) == Approx(1.0 / 3).epsilon(1e-14));
  REQUIRE(std::sin(pixels.lat_deg[3] * kPi / 180) == Approx(11.0 / 12).epsilon(1e-14));
}

TEST_CASE("children of a pixel surround it", "[healpix]") {
  const auto points = [](int64_t r) {
    const Coordinates c = healpix_coordinates(r);
    return unit_vectors<double>(radians_from_degrees(c.lat_deg), radians_from_degrees(c.lon_deg));
  };
  const auto coarse = points(2), fine = points(3);
  for (size_t p = 0; p < coarse.size(); ++p) {
    for (size_t child = 4 * p; child < 4 * p + 4; ++child)
      REQUIRE(squared_distance(coarse[p], fine[child]) < 0.15 * 0.15);
  }
}

TEST_CASE("neighbours are mutual and near; 24 per level are missing", "[healpix]") {
  for (const int64_t r : {1, 2, 3}) {
    const EdgeList edges = healpix_multi_scale_edges({r});
    REQUIRE(edges.num_edges() == 8 * healpix_pixels(r));
    std::map<std::pair<int32_t, int32_t>, int> count;
    int missing = 0;
    for (size_t e = 0; e < edges.source_index.size(); ++e) {
      if (edges.target_index[e] < 0) {
        ++missing;
        continue;
      }
      ++count[{edges.source_index[e], edges.target_index[e]}];
    }
    REQUIRE(missing == 24);
    const Coordinates c = healpix_coordinates(r);
    const auto points =
        unit_vectors<double>(radians_from_degrees(c.lat_deg), radians_from_degrees(c.lon_deg));
    for (const auto& [edge, times] : count) {
      REQUIRE(times == 1);
      REQUIRE(count.count({edge.second, edge.first}) == 1);
      const double chord = std::sqrt(squared_distance(points[static_cast<size_t>(edge.first)],
                                                      points[static_cast<size_t>(edge.second)]));
      REQUIRE(chord < 2.6 / static_cast<double>(int64_t{1} << r));
    }
  }
}

TEST_CASE("coarse levels stand for first descendants on the finest", "[healpix]") {
  const EdgeList coarse = healpix_multi_scale_edges({1}), both = healpix_multi_scale_edges({2, 1});
  for (size_t e = 0; e < coarse.source_index.size(); ++e) {
    REQUIRE(both.source_index[e] == 4 * coarse.source_index[e]);
    REQUIRE(both.target_index[e] == 4 * coarse.target_index[e]);
  }
}

TEST_CASE("resolutions start at 1", "[healpix]") {
  REQUIRE_THROWS_WITH(healpix_coordinates(0), ContainsSubstring("got 0"));
  REQUIRE_THROWS_WITH(healpix_multi_scale_edges({}), ContainsSubstring("at least one level"));
}
