// SPDX-License-Identifier: Apache-2.0
#include "app/run/analytic_cells.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

app::RunConfig config_of(const std::string& analytic) {
  return app::parse_config(R"({"data": {"kind": "analytic", "analytic": )" + analytic + "}}", {});
}

// The path of the fault, or "none".
std::string fault(const std::string& analytic) {
  try {
    app::analytic_cells(config_of(analytic));
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

constexpr const char* kRegion =
    R"({"grid": "o16", "region": {"north": 60, "west": -10, "south": 40, "east": 20, "spacing": 2)";

// Chord of two places on the unit sphere.
double chord(const graph::Coordinates& places, size_t a, size_t b) {
  const auto point = [&](size_t i) {
    const double lat = places.lat_deg[i] / 57.29577951308232,
                 lon = places.lon_deg[i] / 57.29577951308232;
    return std::array<double, 3>{std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon),
                                 std::sin(lat)};
  };
  const auto p = point(a), q = point(b);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

}  // namespace

TEST_CASE("a region lies over the grid: first its cells, then those it does not cover",
          "[analytic_cells]") {
  const app::AnalyticCells whole = app::analytic_cells(config_of(R"({"grid": "o16"})"));
  REQUIRE(whole.grids.empty());
  REQUIRE(whole.places.lat_deg.size() == 1600);
  const app::AnalyticCells cells = app::analytic_cells(config_of(concat(kRegion, "}}")));
  REQUIRE(cells.grids.size() == 2);
  REQUIRE(cells.grids[0] == 11 * 16);
  REQUIRE(static_cast<size_t>(cells.grids[0] + cells.grids[1]) == cells.places.lat_deg.size());
  REQUIRE(cells.places.lat_deg[0] == 60.0);
  REQUIRE(cells.places.lon_deg[0] == -10.0);
  REQUIRE(cells.places.lat_deg[175] == 40.0);
  REQUIRE(cells.places.lon_deg[175] == 20.0);
  REQUIRE(cells.grids[1] < 1600);
  for (size_t n = 176; n < cells.places.lat_deg.size(); ++n) {
    const double lat = cells.places.lat_deg[n];
    const double lon = std::remainder(cells.places.lon_deg[n], 360.0);
    REQUIRE_FALSE((lat < 60.0 && lat > 40.0 && lon > -10.0 && lon < 20.0));
  }
}

TEST_CASE("cells beyond the largest distance are left out", "[analytic_cells]") {
  const app::AnalyticCells cells =
      app::analytic_cells(config_of(concat(kRegion, R"(, "max_distance_km": 900}})")));
  const auto inside = static_cast<size_t>(cells.grids[0]);
  REQUIRE(cells.grids[1] > 10);
  REQUIRE(cells.grids[1] < 200);
  for (size_t n = inside; n < cells.places.lat_deg.size(); ++n) {
    double nearest = 2.0;
    for (size_t i = 0; i < inside; ++i)
      nearest = std::min(nearest, chord(cells.places, n, i));
    REQUIRE(nearest * 6371.229 <= 900.0 + 1e-6);
  }
}

TEST_CASE("regions without cells, and grids that are none, are configuration errors",
          "[analytic_cells]") {
  REQUIRE(fault(concat(kRegion, "}}")) == "none");
  REQUIRE(fault(R"({"grid": "p16"})") == "data.analytic.grid");
  const std::string small =
      R"({"grid": "o16", "region": {"north": 51, "west": 0, "south": 50, "east": 1, "spacing": )";
  REQUIRE(fault(small + "1}}") == "data.analytic.region");
  REQUIRE(fault(small + "0.5}}") == "none");
  REQUIRE(fault(concat(kRegion, R"(, "max_distance_km": 1}})")) == "data.analytic.region");
  const auto refused = [](const std::string& analytic) {
    try {
      config_of(analytic);
    } catch (const ConfigError& error) {
      return error.path();
    }
    return std::string("none");
  };
  REQUIRE(refused(R"({"region": {"north": 60, "south": 40, "east": 9, "spacing": 2}})") ==
          "data.analytic.grid");
  REQUIRE(refused(R"({"grid": "o16", "region": {"north": 60}})") == "data.analytic.region.north");
  REQUIRE(refused(R"({"grid": "o16", "region": {"spacing": 2, "east": 5}})") ==
          "data.analytic.region.north");
  REQUIRE(refused(R"({"grid": "o16", "region": {"spacing": 2, "north": 5}})") ==
          "data.analytic.region.east");
}
