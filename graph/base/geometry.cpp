// SPDX-License-Identifier: Apache-2.0
#include "graph/base/geometry.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::graph {

std::vector<float> radians_from_degrees(std::span<const double> degrees,
                                        DegreeArithmetic arithmetic) {
  constexpr double kFactor = kPi / 180.0;
  std::vector<float> radians;
  radians.reserve(degrees.size());
  for (const double value : degrees) {
    radians.push_back(arithmetic == DegreeArithmetic::kFloat64
                          ? static_cast<float>(value * kFactor)
                          : static_cast<float>(value) * static_cast<float>(kFactor));
  }
  return radians;
}

template <class Real>
std::vector<Point<Real>> unit_vectors(std::span<const float> lat_rad,
                                      std::span<const float> lon_rad) {
  AIFS_CHECK(lat_rad.size() == lon_rad.size(), lat_rad.size(), " latitudes and ", lon_rad.size(),
             " longitudes");
  std::vector<Point<Real>> points(lat_rad.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double lat = lat_rad[i], lon = lon_rad[i];
    const auto cos_lat = static_cast<Real>(std::cos(lat));
    points[i] = {cos_lat * static_cast<Real>(std::cos(lon)),
                 cos_lat * static_cast<Real>(std::sin(lon)), static_cast<Real>(std::sin(lat))};
  }
  return points;
}

template std::vector<Point<float>> unit_vectors(std::span<const float>, std::span<const float>);
template std::vector<Point<double>> unit_vectors(std::span<const float>, std::span<const float>);

double great_circle_angle(double lat1_rad, double lon1_rad, double lat2_rad, double lon2_rad) {
  const double sin_dlat = std::sin((lat1_rad - lat2_rad) / 2);
  const double sin_dlon = std::sin((lon1_rad - lon2_rad) / 2);
  const double a =
      sin_dlat * sin_dlat + std::cos(lat1_rad) * std::cos(lat2_rad) * sin_dlon * sin_dlon;
  return 2 * std::atan2(std::sqrt(a), std::sqrt(std::max(0.0, 1 - a)));
}

double chord_of_arc(double arc_km) {
  return 2 * std::sin(arc_km / (2 * kEarthRadius_km));
}

double arc_of_chord(double chord) {
  return 2 * kEarthRadius_km * std::asin(std::min(1.0, 0.5 * chord));
}

}  // namespace aifs::graph
