// SPDX-License-Identifier: Apache-2.0
#include "report/spectrum.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "verify/fourier.h"

namespace aifs::report {

namespace {

// True if the cells go once around the circle in even steps.
bool goes_around(std::span<const double> longitudes_deg) {
  const auto count = static_cast<double>(longitudes_deg.size());
  const double step = 360.0 / count;
  for (size_t i = 1; i < longitudes_deg.size(); ++i) {
    const double apart = std::remainder(longitudes_deg[i] - longitudes_deg[i - 1] - step, 360.0);
    if (std::abs(apart) > 0.01 * step) return false;
  }
  return true;
}

// Adds the power of one circle at wavenumbers 1 ... power.size().
void add_power(std::span<const float> values, std::vector<double>& power) {
  std::vector<std::complex<double>> waves;
  verify::Fourier(values.size()).transform(values, waves);
  for (size_t m = 1; m <= power.size(); ++m) {
    const double both = 2 * m == values.size() ? 1.0 : 2.0;  // the shortest wave has no sine
    power[m - 1] += both * std::norm(waves[m]);
  }
}

}  // namespace

std::vector<LatitudeCircle> latitude_circles(std::span<const double> latitudes_deg,
                                             std::span<const double> longitudes_deg,
                                             double south_deg, double north_deg) {
  constexpr size_t kFewest = 8;
  std::vector<LatitudeCircle> circles;
  for (size_t first = 0; first < latitudes_deg.size();) {
    size_t last = first + 1;
    while (last < latitudes_deg.size() && latitudes_deg[last] == latitudes_deg[first])
      ++last;
    const double latitude = std::abs(latitudes_deg[first]);
    const bool is_inside = latitude >= south_deg && latitude <= north_deg;
    if (is_inside && last - first >= kFewest &&
        goes_around(longitudes_deg.subspan(first, last - first)))
      circles.push_back({first, last - first});
    first = last;
  }
  return circles;
}

std::vector<double> zonal_spectrum(std::span<const float> field,
                                   std::span<const LatitudeCircle> circles, size_t most) {
  for (const LatitudeCircle& circle : circles)
    most = std::min(most, circle.count / 2);
  std::vector<double> power(most, 0.0);
  size_t num_circles = 0;
  for (const LatitudeCircle& circle : circles) {
    const std::span<const float> values = field.subspan(circle.first, circle.count);
    if (std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); })) continue;
    add_power(values, power);
    ++num_circles;
  }
  if (num_circles == 0) return {};
  for (double& value : power)
    value /= static_cast<double>(num_circles);
  return power;
}

}  // namespace aifs::report
