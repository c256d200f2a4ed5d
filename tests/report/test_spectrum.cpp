// SPDX-License-Identifier: Apache-2.0
#include "report/spectrum.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "tests/support/catch.h"

using namespace aifs::report;

namespace {

constexpr size_t kCells = 24;

// A reduced grid: circles at 70, 45 and -45 degrees, of 12, 24 and 36 cells.
struct Grid {
  std::vector<double> lat, lon;
  Grid() {
    for (const auto& [latitude, count] : {std::pair{70.0, 12}, {45.0, 24}, {-45.0, 36}})
      for (int i = 0; i < count; ++i) {
        lat.push_back(latitude);
        lon.push_back(std::remainder(10.0 + 360.0 * i / count, 360.0));
      }
  }
};

}  // namespace

TEST_CASE("circles of a band are found on both hemispheres", "[spectrum]") {
  const Grid grid;
  const auto circles = latitude_circles(grid.lat, grid.lon, 30.0, 60.0);
  REQUIRE(circles.size() == 2);
  CHECK(circles[0].first == 12);
  CHECK(circles[0].count == 24);
  CHECK(circles[1].first == 36);
  CHECK(circles[1].count == 36);
  std::vector<double> uneven = grid.lon;
  uneven[20] += 5.0;
  CHECK(latitude_circles(grid.lat, uneven, 30.0, 60.0).size() == 1);
}

TEST_CASE("a wave has its power at its own wavenumber, half its squared amplitude", "[spectrum]") {
  std::vector<float> field;
  for (size_t i = 0; i < kCells; ++i) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(i) / kCells;
    field.push_back(static_cast<float>(7.0 + 3.0 * std::cos(5.0 * angle + 0.4)));
  }
  const std::vector<LatitudeCircle> circles{{0, kCells}};
  const std::vector<double> power = zonal_spectrum(field, circles, 100);
  REQUIRE(power.size() == kCells / 2);
  for (size_t m = 1; m <= power.size(); ++m)
    CHECK(power[m - 1] == Approx(m == 5 ? 4.5 : 0.0).margin(1e-9));
}

TEST_CASE("the powers of a circle add up to its variance", "[spectrum]") {
  std::vector<float> field;
  for (size_t i = 0; i < kCells; ++i)
    field.push_back(static_cast<float>((i * 7919) % 101));
  const double mean = std::accumulate(field.begin(), field.end(), 0.0) / kCells;
  double variance = 0.0;
  for (const float value : field)
    variance += std::pow(static_cast<double>(value) - mean, 2) / kCells;
  const std::vector<LatitudeCircle> circles{{0, kCells}};
  const std::vector<double> power = zonal_spectrum(field, circles, 100);
  CHECK(std::accumulate(power.begin(), power.end(), 0.0) == Approx(variance).epsilon(1e-10));
}

TEST_CASE("circles with a missing value are left out, and the shortest ends the spectrum",
          "[spectrum]") {
  std::vector<float> field(36, 1.0F);
  field[2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<LatitudeCircle> circles{{0, 12}, {12, 24}};
  CHECK(zonal_spectrum(field, circles, 100).size() == 6);
  CHECK(zonal_spectrum(field, circles, 4).size() == 4);
  CHECK(zonal_spectrum(field, std::span(circles).first(1), 100).empty());
}
