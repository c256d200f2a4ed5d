// SPDX-License-Identifier: Apache-2.0
#include "verify/latitude_rows.h"

#include <algorithm>
#include <cmath>

#include "graph/nodes/gaussian_grid.h"
#include "verify/degrees.h"

namespace aifs::verify {

namespace {

// Difference of two longitudes, in [-180, 180].
double longitude_difference(double a_deg, double b_deg) {
  return std::remainder(a_deg - b_deg, 360.0);
}

// 2 (1 - x²) / (n P_{n-1}(x))² at a root x of the Legendre polynomial of degree n.
double gaussian_weight(int64_t n, double x) {
  double value = 1.0, before = 0.0;
  for (int64_t k = 1; k < n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2.0 * degree - 1.0) * x * value - (degree - 1.0) * before) / degree;
    before = value;
    value = next;
  }
  const double slope = static_cast<double>(n) * value;
  return 2.0 * (1.0 - x * x) / (slope * slope);
}

}  // namespace

std::optional<LatitudeRows> latitude_rows(std::span<const double> latitudes_deg,
                                          std::span<const double> longitudes_deg) {
  LatitudeRows rows;
  const size_t n = latitudes_deg.size();
  for (size_t i = 0; i < n; ++i) {
    if (i > 0 && latitudes_deg[i] == latitudes_deg[i - 1]) continue;
    rows.latitudes_deg.push_back(latitudes_deg[i]);
    rows.first_longitudes_deg.push_back(longitudes_deg[i]);
    rows.begin.push_back(static_cast<int64_t>(i));
  }
  rows.begin.push_back(static_cast<int64_t>(n));
  if (rows.num_rows() < 2) return std::nullopt;
  for (int64_t r = 0; r < rows.num_rows(); ++r) {
    const auto first = static_cast<size_t>(rows.begin[static_cast<size_t>(r)]);
    const auto length = static_cast<size_t>(rows.length(r));
    if (length < 2) return std::nullopt;
    const double distance = 360.0 / static_cast<double>(length);
    for (size_t k = 0; k < length; ++k) {
      const double expected = longitudes_deg[first] + static_cast<double>(k) * distance;
      if (std::abs(longitude_difference(longitudes_deg[first + k], expected)) > 1e-3 * distance)
        return std::nullopt;
    }
  }
  return rows;
}

std::optional<GaussianRows> gaussian_rows(const LatitudeRows& rows) {
  const int64_t num_rows = rows.num_rows();
  if (num_rows % 2 != 0) return std::nullopt;
  GaussianRows gaussian{graph::gaussian_latitudes(num_rows / 2, 1), {}};
  std::vector<double>& latitudes = gaussian.latitudes_deg;
  if (rows.latitudes_deg.front() < 0.0) std::reverse(latitudes.begin(), latitudes.end());
  for (size_t r = 0; r < latitudes.size(); ++r) {
    if (std::abs(latitudes[r] - rows.latitudes_deg[r]) > 1e-3) return std::nullopt;
    gaussian.weights.push_back(
        gaussian_weight(num_rows, std::sin(latitudes[r] * kRadiansOfDegree)));
  }
  return gaussian;
}

}  // namespace aifs::verify
