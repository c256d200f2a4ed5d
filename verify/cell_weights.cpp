// SPDX-License-Identifier: Apache-2.0
#include "verify/cell_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "graph/base/geometry.h"
#include "graph/weights/area_weights.h"
#include "verify/degrees.h"
#include "verify/latitude_rows.h"

namespace aifs::verify {

namespace {

double sine_of(double degrees) {
  return std::sin(degrees * kRadiansOfDegree);
}

// Differences of the sine of latitude between the middles of rows; the outer ones reach the poles.
// Nothing if the rows do not descend or ascend, or if they end far from a pole.
std::optional<std::vector<double>> band_weights(const std::vector<double>& latitudes_deg) {
  const size_t n = latitudes_deg.size();
  const double sign = latitudes_deg.front() > latitudes_deg.back() ? 1.0 : -1.0;
  std::vector<double> weights(n);
  double upper = 1.0, largest = 0.0;
  for (size_t r = 0; r < n; ++r) {
    if (r + 1 < n) {
      const double step = sign * (latitudes_deg[r] - latitudes_deg[r + 1]);
      if (step <= 0.0) return std::nullopt;
      largest = std::max(largest, step);
    }
    const double lower =
        r + 1 < n ? sign * sine_of(0.5 * (latitudes_deg[r] + latitudes_deg[r + 1])) : -1.0;
    weights[r] = upper - lower;
    upper = lower;
  }
  const double gap =
      std::max(90.0 - sign * latitudes_deg.front(), 90.0 + sign * latitudes_deg.back());
  if (gap > 1.001 * largest) return std::nullopt;
  return weights;
}

std::vector<double> voronoi_weights(std::span<const double> latitudes_deg,
                                    std::span<const double> longitudes_deg, const char* option) {
  constexpr double kLargest = 0.01 * 4.0 * graph::kPi;  // of cells that may cover the globe
  std::vector<double> areas;
  try {
    areas = graph::spherical_area_weights(graph::radians_from_degrees(latitudes_deg),
                                          graph::radians_from_degrees(longitudes_deg), 0);
  } catch (const DataError& error) {
    throw ConfigError(option, concat("the cells have no areas: ", error.what()), "choose 'cosine'");
  }
  if (*std::max_element(areas.begin(), areas.end()) > kLargest)
    throw ConfigError(option, "the cells do not cover the globe: those at the border have no area",
                      "choose 'cosine'");
  return areas;
}

}  // namespace

std::vector<double> cell_weights(WeightKind kind, std::span<const double> latitudes_deg,
                                 std::span<const double> longitudes_deg, const char* option) {
  std::vector<double> weights;
  if (kind == WeightKind::kCosine) {
    for (const double latitude : latitudes_deg)
      weights.push_back(std::max(std::cos(latitude * kRadiansOfDegree), 1e-12));
    return weights;
  }
  const std::optional<LatitudeRows> rows = latitude_rows(latitudes_deg, longitudes_deg);
  std::optional<std::vector<double>> of_rows;
  if (rows) {
    const std::optional<GaussianRows> gaussian = gaussian_rows(*rows);
    of_rows = gaussian ? gaussian->weights : band_weights(rows->latitudes_deg);
  }
  if (!of_rows) return voronoi_weights(latitudes_deg, longitudes_deg, option);
  for (int64_t r = 0; r < rows->num_rows(); ++r) {
    const auto length = static_cast<size_t>(rows->length(r));
    const double share = (*of_rows)[static_cast<size_t>(r)] / static_cast<double>(length);
    weights.insert(weights.end(), length, std::max(share, 1e-12));
  }
  return weights;
}

}  // namespace aifs::verify
