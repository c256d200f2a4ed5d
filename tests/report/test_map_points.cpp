// SPDX-License-Identifier: Apache-2.0
#include "report/map_points.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/support/catch.h"

using namespace aifs::report;

namespace {

// About `count` points, evenly spread (Fibonacci).
struct Points {
  std::vector<double> lat, lon;
  explicit Points(int count, double south = -90.0) {
    for (int i = 0; i < count; ++i) {
      const double latitude = std::asin(1.0 - (2.0 * i + 1.0) / count) * 180.0 / std::numbers::pi;
      if (latitude < south) continue;
      lat.push_back(latitude);
      lon.push_back(std::remainder(i * 137.50776405, 360.0));
    }
  }
};

double angle_deg(const Points& p, size_t i, size_t k) {
  const double r = std::numbers::pi / 180.0;
  const double z =
      std::sin(p.lat[i] * r) * std::sin(p.lat[k] * r) +
      std::cos(p.lat[i] * r) * std::cos(p.lat[k] * r) * std::cos((p.lon[i] - p.lon[k]) * r);
  return std::acos(std::min(1.0, z)) / r;
}

}  // namespace

TEST_CASE("few points are all drawn", "[map_points]") {
  const Points points(50);
  const auto chosen = even_points(points.lat, points.lon, 50);
  REQUIRE(chosen.size() == 50);
  CHECK(chosen.front() == 0);
  CHECK(chosen.back() == 49);
}

TEST_CASE("of many points a part is drawn that lies evenly", "[map_points]") {
  const Points points(20000);
  const auto chosen = even_points(points.lat, points.lon, 1000);
  CHECK(chosen.size() <= 1000);
  CHECK(chosen.size() > 600);
  // Cells of 1000 to 600 have sides of 6.4 to 8.3 degrees: no place is farther than a diagonal.
  for (size_t i = 0; i < points.lat.size(); i += 97) {
    double nearest = 180.0;
    for (const int64_t k : chosen)
      nearest = std::min(nearest, angle_deg(points, i, static_cast<size_t>(k)));
    CHECK(nearest < 8.3 * 1.5);
  }
}

TEST_CASE("a region has as many points as the globe would", "[map_points]") {
  const Points points(20000, 60.0);  // a cap, 6.7 % of the sphere
  REQUIRE(points.lat.size() > 1300);
  const auto chosen = even_points(points.lat, points.lon, 500);
  CHECK(chosen.size() <= 500);
  CHECK(chosen.size() > 250);
}

TEST_CASE("codes give values back to half a step, and say where there is none", "[map_points]") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> field{-2.0F, 99.0F, none, 3.0F, 0.123F};
  const CodedField code = coded(field, std::vector<int64_t>{0, 2, 3, 4});
  CHECK(code.low == -2.0);
  CHECK(code.high == 3.0);
  REQUIRE(code.codes.size() == 4);
  const auto value = [&](size_t i) {
    return code.low + (static_cast<uint8_t>(code.codes[i]) - 1) / 254.0 * (code.high - code.low);
  };
  CHECK(static_cast<uint8_t>(code.codes[0]) == 1);
  CHECK(code.codes[1] == 0);
  CHECK(static_cast<uint8_t>(code.codes[2]) == 255);
  CHECK(std::abs(value(3) - 0.123) <= 0.5 * 5.0 / 254.0 + 1e-6);
  const CodedField nothing = coded(std::vector<float>{none, none}, std::vector<int64_t>{0, 1});
  CHECK(nothing.low == 0.0);
  CHECK(nothing.codes == std::string(2, '\0'));
}
