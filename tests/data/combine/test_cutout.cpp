// SPDX-License-Identifier: Apache-2.0
#include "data/combine/cutout.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

struct Grid {
  std::vector<double> latitudes, longitudes;
  Cells cells() const { return {latitudes, longitudes}; }
};

// A grid of equal steps from north to south and west to east.
Grid grid(double north, double south, double west, double east, double step) {
  Grid result;
  for (double latitude = north; latitude >= south - 1e-9; latitude -= step) {
    for (double longitude = west; longitude <= east + 1e-9; longitude += step) {
      result.latitudes.push_back(latitude);
      result.longitudes.push_back(longitude);
    }
  }
  return result;
}

const Grid kGlobe = grid(85.0, -85.0, 0.0, 350.0, 10.0);

}  // namespace

TEST_CASE("outer cells within the inner grid give way, those outside stay", "[cutout]") {
  const Grid inner = grid(42.0, 18.0, 32.0, 68.0, 1.0);
  const std::vector<bool> stays =
      cells_outside(inner.cells(), kGlobe.cells(), {.min_distance_km = 0.0});
  for (size_t n = 0; n < stays.size(); ++n) {
    const double latitude = kGlobe.latitudes[n], longitude = kGlobe.longitudes[n];
    const bool inside = latitude < 42 && latitude > 18 && longitude > 32 && longitude < 68;
    INFO(latitude << " " << longitude);
    REQUIRE(stays[n] == !inside);
  }
}

TEST_CASE("distances add and take away outer cells", "[cutout]") {
  const Grid inner = grid(42.0, 18.0, 32.0, 68.0, 1.0);
  const auto count = [&](const CutoutOptions& options) {
    const std::vector<bool> stays = cells_outside(inner.cells(), kGlobe.cells(), options);
    return std::count(stays.begin(), stays.end(), true);
  };
  const auto plain = count({.min_distance_km = 0.0});
  // The ring of cells around the inner grid is 3 and 8 degrees away from it.
  REQUIRE(count({.cropping_distance_deg = 12.0, .min_distance_km = 1200.0}) < plain);
  REQUIRE(count({.cropping_distance_deg = 0.5, .min_distance_km = 1200.0}) == plain);
  const auto near = count({.min_distance_km = 0.0, .max_distance_km = 1200.0});
  REQUIRE(near > 0);
  REQUIRE(near < 30);
}

TEST_CASE("areas count longitudes modulo 360 degrees", "[cutout]") {
  const auto count = [&](const Area& area) {
    const std::vector<bool> inside = cells_in_area(kGlobe.cells(), area);
    return std::count(inside.begin(), inside.end(), true);
  };
  REQUIRE(count({60, 20, 20, 80}) == 4 * 7);
  REQUIRE(count({60, -50, 20, 50}) == 4 * 11);
  REQUIRE(count({60, 310, 20, 410}) == 4 * 11);
  REQUIRE(count({2, 0, 1, 359}) == 0);
  const Area bounds = bounds_of(grid(5, -5, 10, 20, 5).cells());
  REQUIRE(bounds.north_deg == 5);
  REQUIRE(bounds.east_deg == 20);
}

TEST_CASE("grids meet where cells are less than a degree apart", "[cutout]") {
  const Grid one = grid(10, 0, 0, 10, 1), other = grid(10, 0, 10.5, 20, 1),
             far = grid(10, 0, 11.5, 20, 1);
  REQUIRE(grids_meet(one.cells(), other.cells()));
  REQUIRE_FALSE(grids_meet(one.cells(), far.cells()));
}
