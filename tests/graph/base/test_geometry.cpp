// SPDX-License-Identifier: Apache-2.0
#include "graph/base/geometry.h"

#include <cmath>

#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"

using namespace aifs::graph;

TEST_CASE("degrees become radians with one rounding, or in float32 throughout", "[geometry]") {
  const std::vector<double> degrees{0.0, 90.0, -180.0, 37.1234567891};
  const auto exact = radians_from_degrees(degrees);
  const auto single = radians_from_degrees(degrees, DegreeArithmetic::kFloat32);
  for (size_t i = 0; i < degrees.size(); ++i) {
    REQUIRE(exact[i] == static_cast<float>(degrees[i] * (kPi / 180)));
    REQUIRE(single[i] == static_cast<float>(degrees[i]) * static_cast<float>(kPi / 180));
  }
  REQUIRE(exact[1] == 1.57079637F);
}

TEST_CASE("a quarter of float32 conversions is one unit in the last place off", "[geometry]") {
  const aifs::CounterRng rng(1);
  std::vector<double> degrees;
  for (uint64_t i = 0; i < 4000; ++i)
    degrees.push_back(360 * rng.uniform(i));
  const auto exact = radians_from_degrees(degrees);
  const auto single = radians_from_degrees(degrees, DegreeArithmetic::kFloat32);
  int different = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    REQUIRE(std::abs(exact[i] - single[i]) <= 4.8e-7F);
    if (exact[i] != single[i]) ++different;
  }
  REQUIRE(different > 400);
  REQUIRE(different < 2000);
}

TEST_CASE("unit vectors have length 1 up to rounding, and the axes are where they should be",
          "[geometry]") {
  const NodeSet nodes = samples::random_nodes("n", 1000, 2);
  for (const auto& p : unit_vectors<double>(nodes.lat_rad, nodes.lon_rad))
    REQUIRE(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] == Approx(1.0).epsilon(1e-15));
  for (const auto& p : unit_vectors<float>(nodes.lat_rad, nodes.lon_rad))
    REQUIRE(std::abs(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - 1.0F) < 5e-7F);
  const std::vector<float> lat{0.0F, 0.0F, static_cast<float>(kPi / 2)},
      lon{0.0F, static_cast<float>(kPi / 2), 0.0F};
  const auto axes = unit_vectors<double>(lat, lon);
  for (size_t axis = 0; axis < 3; ++axis)
    REQUIRE(axes[axis][axis] == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("the great-circle angle knows quarter turns, antipodes and short ways", "[geometry]") {
  REQUIRE(great_circle_angle(0, 0, 0, kPi / 2) == Approx(kPi / 2).epsilon(1e-15));
  REQUIRE(great_circle_angle(0.3, 0.2, -0.3, 0.2 + kPi) == Approx(kPi).epsilon(1e-7));
  REQUIRE(great_circle_angle(kPi / 2, 1.0, kPi / 2, 2.0) < 1e-15);
  REQUIRE(great_circle_angle(0.5, 0.01, 0.5, 2 * kPi - 0.01) ==
          Approx(great_circle_angle(0.5, 0.01, 0.5, -0.01)).epsilon(1e-12));
  REQUIRE(great_circle_angle(0.7, 1.0, 0.7 + 1e-9, 1.0) == Approx(1e-9).epsilon(1e-6));
}

TEST_CASE("a chord is twice the sine of half the angle", "[geometry]") {
  REQUIRE(chord_of_arc(kEarthRadius_km * kPi) == Approx(2.0).epsilon(1e-15));
  REQUIRE(chord_of_arc(1.0) == Approx(1.0 / kEarthRadius_km).epsilon(1e-8));
  for (const double arc_km : {1e-3, 500.0, 15000.0})
    REQUIRE(arc_of_chord(chord_of_arc(arc_km)) == Approx(arc_km).epsilon(1e-14));
  REQUIRE(arc_of_chord(2.0 + 1e-7) == Approx(kEarthRadius_km * kPi).epsilon(1e-15));
  const Point<double> a{1, 0, 0}, b{0, 1, 0};
  REQUIRE(squared_distance(a, b) == 2.0);
}
