// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/gaussian_grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "graph/nodes/gaussian_rows.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;

TEST_CASE("an octahedral grid O<N> has 4 N (N + 9) points, rows of 20, 24, ...",
          "[gaussian_grid]") {
  for (const int64_t n : {1, 8, 32, 96, 320, 1280}) {
    const GaussianGrid grid{GaussianKind::kOctahedral, n};
    REQUIRE(grid.num_points() == 4 * n * (n + 9));
    REQUIRE(grid.row_lengths().front() == 20);
    REQUIRE(grid.row_lengths()[static_cast<size_t>(n - 1)] == 20 + 4 * (n - 1));
  }
}

TEST_CASE("a regular grid F<N> has 2 N rows of 4 N points", "[gaussian_grid]") {
  REQUIRE(GaussianGrid{GaussianKind::kRegular, 32}.num_points() == 8 * 32 * 32);
}

TEST_CASE("classic grids have the published numbers of points", "[gaussian_grid]") {
  const std::vector<std::pair<int64_t, int64_t>> published{
      {16, 1688},    {24, 3528},     {32, 6114},     {48, 13280},   {64, 23112},   {80, 35718},
      {96, 50662},   {128, 88838},   {160, 138346},  {200, 213988}, {256, 348528}, {320, 542080},
      {400, 843490}, {512, 1373624}, {576, 1736346}, {640, 2140702}};
  REQUIRE(classic_gaussian_numbers().size() == published.size());
  for (const auto& [number, points] : published) {
    REQUIRE(GaussianGrid{GaussianKind::kClassic, number}.num_points() == points);
    const auto rows = classic_gaussian_rows(number);
    REQUIRE(std::is_sorted(rows.begin(), rows.end()));
    REQUIRE(rows.back() == 4 * number);
  }
}

// The Legendre polynomial of this degree at x, by its recurrence.
static long double legendre(int64_t degree, long double x) {
  long double previous = 1, value = x;
  for (int64_t k = 2; k <= degree; ++k) {
    const auto m = static_cast<long double>(k);
    const long double next = ((2 * m - 1) * x * value - (m - 1) * previous) / m;
    previous = value;
    value = next;
  }
  return value;
}

TEST_CASE("Gaussian latitudes are the roots of the Legendre polynomial of degree 2 N",
          "[gaussian_grid]") {
  for (const int64_t n : {1, 2, 8, 96, 640}) {
    const auto latitudes = gaussian_latitudes(n);
    REQUIRE(static_cast<int64_t>(latitudes.size()) == 2 * n);
    REQUIRE(std::is_sorted(latitudes.rbegin(), latitudes.rend()));
    for (size_t i = 0; i < latitudes.size(); ++i) {
      REQUIRE(latitudes[i] == -latitudes[latitudes.size() - 1 - i]);
      // The polynomial changes its sign within a few units in the last place of the latitude.
      const double step = 4e-14;
      const auto at = [&](double degrees) {
        return legendre(
            2 * n, std::sin(static_cast<long double>(degrees) * 3.14159265358979323846L / 180));
      };
      REQUIRE(at(latitudes[i] - step) * at(latitudes[i] + step) <= 0);
    }
  }
  REQUIRE(gaussian_latitudes(1)[0] == Approx(35.264389682754654).epsilon(1e-15));
  REQUIRE(gaussian_latitudes(80)[0] == Approx(89.141519426461).epsilon(1e-13));
}

TEST_CASE("rows run north to south and start at the meridian of Greenwich", "[gaussian_grid]") {
  const Coordinates grid = gaussian_coordinates(parse_gaussian_grid("o8"));
  REQUIRE(grid.num_points() == 544);
  REQUIRE(grid.lon_deg[0] == 0.0);
  REQUIRE(grid.lon_deg[1] == 18.0);
  REQUIRE(grid.lon_deg[20] == 0.0);
  REQUIRE(grid.lon_deg[21] == 15.0);
  REQUIRE(grid.lat_deg[19] > grid.lat_deg[20]);
  REQUIRE(grid.lat_deg.back() == -grid.lat_deg.front());
}

TEST_CASE("grid names are read in either case, and bad ones say what there is", "[gaussian_grid]") {
  REQUIRE(parse_gaussian_grid("O96").number == 96);
  REQUIRE(parse_gaussian_grid("n320").kind == GaussianKind::kClassic);
  REQUIRE(parse_gaussian_grid("F32").kind == GaussianKind::kRegular);
  for (const char* bad : {"", "o", "96", "o96x", "o-3", "o0", "x12", "o99999999999999999999"})
    REQUIRE_THROWS_WITH(parse_gaussian_grid(bad), ContainsSubstring("not the name of a Gaussian"));
  try {
    parse_gaussian_grid("n97");
    FAIL("n97 has no table");
  } catch (const Error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("'n97'"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("n96"));
  }
}
