// SPDX-License-Identifier: Apache-2.0
#include "verify/latitude_rows.h"

#include <cmath>

#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"

using namespace aifs;
using verify::gaussian_rows;
using verify::latitude_rows;

TEST_CASE("rows of reduced Gaussian grids are found, and their weights integrate polynomials",
          "[latitude_rows]") {
  for (const char* name : {"o8", "f6", "n32"}) {
    INFO(name);
    const auto grid = graph::parse_gaussian_grid(name);
    const auto points = graph::gaussian_coordinates(grid);
    const auto rows = latitude_rows(points.lat_deg, points.lon_deg);
    REQUIRE(rows);
    REQUIRE(rows->num_rows() == 2 * grid.number);
    REQUIRE(rows->begin.back() == grid.num_points());
    const auto gaussian = gaussian_rows(*rows);
    REQUIRE(gaussian);
    const std::vector<double>& weights = gaussian->weights;
    // The integral of x^d over -1 ... 1 is exact up to d = 4 N - 1.
    for (const int64_t degree :
         {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{4}, 4 * grid.number - 2}) {
      double sum = 0.0;
      for (size_t r = 0; r < weights.size(); ++r)
        sum += weights[r] * std::pow(std::sin(gaussian->latitudes_deg[r] * 0.017453292519943295),
                                     static_cast<double>(degree));
      const double wanted = degree % 2 == 1 ? 0.0 : 2.0 / static_cast<double>(degree + 1);
      REQUIRE(std::abs(sum - wanted) < 1e-14 * static_cast<double>(weights.size()));
    }
  }
}

TEST_CASE("what is no circle of latitude makes no rows", "[latitude_rows]") {
  const std::vector<double> latitudes{10, 10, 10, -10, -10, -10};
  REQUIRE(latitude_rows(latitudes, std::vector<double>{0, 120, 240, 60, 180, -60}));
  // A limited area, westward rows, one row.
  REQUIRE_FALSE(latitude_rows(latitudes, std::vector<double>{0, 1, 2, 0, 1, 2}));
  REQUIRE_FALSE(latitude_rows(latitudes, std::vector<double>{0, 240, 120, 0, 240, 120}));
  REQUIRE_FALSE(latitude_rows(std::vector<double>{5, 5}, std::vector<double>{0, 180}));
  // Rows that are not Gaussian.
  const auto rows = latitude_rows(latitudes, std::vector<double>{0, 120, 240, 0, 120, 240});
  REQUIRE_FALSE(gaussian_rows(*rows));
}
