// SPDX-License-Identifier: Apache-2.0
#include "graph/base/geometry.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/large_vector.h"
#include "graph/base/parallel_for.h"

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
                                      std::span<const float> lon_rad, int64_t num_threads) {
  AIFS_CHECK(lat_rad.size() == lon_rad.size(), lat_rad.size(), " latitudes and ", lon_rad.size(),
             " longitudes");
  auto points = large_vector<Point<Real>>(lat_rad.size());
  parallel_for(static_cast<int64_t>(points.size()), num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 UnitVectors<Real> unit_vector;
                 for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                   points[i] = unit_vector(lat_rad[i], lon_rad[i]);
               });
  return points;
}

template std::vector<Point<float>> unit_vectors(std::span<const float>, std::span<const float>,
                                                int64_t);
template std::vector<Point<double>> unit_vectors(std::span<const float>, std::span<const float>,
                                                 int64_t);

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
