// SPDX-License-Identifier: Apache-2.0
#include "verify/cell_weights.h"

#include <cmath>
#include <numeric>

#include "core/check.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/healpix.h"
#include "tests/support/catch.h"

using namespace aifs;
using verify::cell_weights;
using verify::WeightKind;

namespace {

std::vector<double> areas(const std::vector<double>& latitudes,
                          const std::vector<double>& longitudes) {
  return cell_weights(WeightKind::kArea, latitudes, longitudes, "--weights");
}

}  // namespace

TEST_CASE("cosines are of latitude, and positive at the poles", "[cell_weights]") {
  const auto weights = cell_weights(WeightKind::kCosine, std::vector<double>{60.0, 0.0, 90.0},
                                    std::vector<double>{0.0, 0.0, 0.0}, "");
  REQUIRE(weights[0] == Approx(0.5));
  REQUIRE(weights[1] == 1.0);
  REQUIRE(weights[2] > 0.0);
  REQUIRE(weights[2] < 1e-10);
}

TEST_CASE("areas of a reduced Gaussian grid are its quadrature weights", "[cell_weights]") {
  const auto points = graph::gaussian_coordinates(graph::parse_gaussian_grid("o16"));
  const auto weights = areas(points.lat_deg, points.lon_deg);
  double sum = 0.0, squares = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    squares += weights[i] * std::pow(std::sin(points.lat_deg[i] * 0.017453292519943295), 2);
  }
  REQUIRE(sum == Approx(2.0).epsilon(1e-13));
  REQUIRE(squares == Approx(2.0 / 3.0).epsilon(1e-13));  // the mean of sin² is a third
}

TEST_CASE("areas of a regular grid are those between the middles of rows", "[cell_weights]") {
  std::vector<double> latitudes, longitudes;
  for (const double lat : {90.0, 30.0, -30.0, -90.0}) {
    for (const double lon : {0.0, 90.0, 180.0, 270.0}) {
      latitudes.push_back(lat);
      longitudes.push_back(lon);
    }
  }
  const auto weights = areas(latitudes, longitudes);
  const double cap = (1.0 - std::sin(60.0 * 0.017453292519943295)) / 4;
  REQUIRE(weights[0] == Approx(cap).epsilon(1e-12));
  REQUIRE(weights[4] == Approx(0.25 - cap).epsilon(1e-12));
  REQUIRE(std::accumulate(weights.begin(), weights.end(), 0.0) == Approx(2.0).epsilon(1e-12));
}

TEST_CASE("areas of other cells around the globe are Voronoi cells", "[cell_weights]") {
  const auto points = graph::healpix_coordinates(3);
  const auto weights = areas(points.lat_deg, points.lon_deg);
  REQUIRE(std::accumulate(weights.begin(), weights.end(), 0.0) ==
          Approx(4.0 * 3.14159265358979).epsilon(1e-5));
  const double each = 4.0 * 3.14159265358979 / static_cast<double>(weights.size());
  for (const double weight : weights)
    REQUIRE(weight == Approx(each).epsilon(0.35));  // pixels have equal areas, their cells nearly
}

TEST_CASE("cells of a limited area have no areas", "[cell_weights]") {
  std::vector<double> latitudes, longitudes;
  for (int i = 0; i < 30; ++i) {
    latitudes.push_back(40.0 + i % 5 + 0.1 * i);
    longitudes.push_back(5.0 + 0.7 * i);
  }
  REQUIRE_THROWS_WITH(areas(latitudes, longitudes),
                      ContainsSubstring("'--weights'") && ContainsSubstring("cover the globe"));
}
