// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/short_edges.h"

#include <algorithm>

#include "core/rng.h"
#include "graph/base/geometry.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

namespace {

EdgeAngles angles_of(float source_lat, float source_lon, float target_lat, float target_lon) {
  const double s = source_lat, t = target_lat, lon = target_lon;
  return {s,   source_lon,  std::sin(s), std::cos(s),   t,
          lon, std::sin(t), std::cos(t), std::sin(lon), std::cos(lon)};
}

// The direction in double, as edge_attributes.h defines it.
std::array<float, 2> direction(const EdgeAngles& a) {
  const double dlon = a.source_lon - a.target_lon;
  const double east = a.cos_source_lat * std::sin(dlon);
  const double north =
      a.cos_target_lat * a.sin_source_lat - a.sin_target_lat * a.cos_source_lat * std::cos(dlon);
  const double x = -north * a.cos_target_lon - east * a.sin_target_lon;
  const double y = -north * a.sin_target_lon + east * a.cos_target_lon;
  const double length = std::max(std::hypot(x, y), 1e-8);
  return {static_cast<float>(x / length), static_cast<float>(y / length)};
}

float length(const EdgeAngles& a) {
  return static_cast<float>(
      great_circle_angle(a.source_lat, a.source_lon, a.target_lat, a.target_lon));
}

}  // namespace

TEST_CASE("short edges have the bits of the mathematical library", "[short_edges]") {
  const CounterRng rng(7);
  uint64_t draw = 0;
  const auto between = [&](double low, double high) {
    return low + (high - low) * rng.uniform(draw++);
  };
  int64_t num_lengths = 0, num_directions = 0;
  constexpr int64_t kEdges = 400000;
  for (int64_t i = 0; i < kEdges; ++i) {
    const double lat = std::asin(between(-1, 1)), lon = between(-kPi, kPi);
    const double apart = std::pow(10.0, between(-6, -1));
    const double turn = i % 2 == 0 && lon < 0 ? 2 * kPi : 0;  // sets count longitudes differently
    const auto angles =
        angles_of(static_cast<float>(std::clamp(lat + between(-apart, apart), -kPi / 2, kPi / 2)),
                  static_cast<float>(lon + turn + between(-apart, apart) / std::cos(lat)),
                  static_cast<float>(lat), static_cast<float>(lon));
    if (const auto quick = short_edge_length(angles)) {
      ++num_lengths;
      REQUIRE(*quick == length(angles));
    }
    if (const auto quick = short_edge_direction(angles)) {
      ++num_directions;
      REQUIRE(*quick == direction(angles));
    }
  }
  CHECK(num_lengths > 0.95 * kEdges);
  CHECK(num_directions > 0.9 * kEdges);
}

TEST_CASE("long edges, poles and edges of no length are left to the library", "[short_edges]") {
  REQUIRE_FALSE(short_edge_length(angles_of(0.1F, 0.2F, 0.5F, 0.2F)));
  REQUIRE_FALSE(short_edge_direction(angles_of(0.1F, 0.2F, 0.1F, 0.6F)));
  REQUIRE_FALSE(short_edge_direction(angles_of(0.1F, 0.2F, 0.1F, 0.2F)));
  REQUIRE(short_edge_length(angles_of(0.1F, 0.2F, 0.1F, 0.2F)) == 0.0F);
  const auto south = static_cast<float>(-kPi / 2);  // beyond the pole
  REQUIRE_FALSE(short_edge_length(angles_of(south, 0.2F, -1.57F, 0.2F)));
}
