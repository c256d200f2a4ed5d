// SPDX-License-Identifier: Apache-2.0
// Points on the unit sphere. Edges are selected by chord length between float32 points, as in
// Anemoi: degrees -> radians in double -> rounded to float32 -> float32 sines and cosines ->
// float32 (x, y, z). Edges at the edge of a search radius depend on every one of these roundings.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/enum_names.h"

namespace aifs::graph {

template <class Real>
using Point = std::array<Real, 3>;  // x, y, z

constexpr double kPi = 3.14159265358979323846;
constexpr double kEarthRadius_km = 6371.0;

// Coordinates in degrees, one entry per point.
struct Coordinates {
  std::vector<double> lat_deg, lon_deg;

  int64_t num_points() const { return static_cast<int64_t>(lat_deg.size()); }
};

// How degrees become float32 radians: product in double and one rounding, or all in float32 (what
// Anemoi does with coordinates given as Python lists; a quarter of them differ by one ulp).
enum class DegreeArithmetic { kFloat64, kFloat32 };

std::vector<float> radians_from_degrees(std::span<const double> degrees,
                                        DegreeArithmetic arithmetic = DegreeArithmetic::kFloat64);

// Unit vectors of one place after the other: sines, cosines and their products rounded to `Real`
// (float or double). Places on one latitude share its sine and cosine.
template <class Real>
class UnitVectors {
 public:
  Point<Real> operator()(float lat_rad, float lon_rad) {
    if (lat_rad != lat_rad_) {
      lat_rad_ = lat_rad;
      sin_lat_ = static_cast<Real>(std::sin(static_cast<double>(lat_rad)));
      cos_lat_ = static_cast<Real>(std::cos(static_cast<double>(lat_rad)));
    }
    const double lon = lon_rad;
    return {cos_lat_ * static_cast<Real>(std::cos(lon)),
            cos_lat_ * static_cast<Real>(std::sin(lon)), sin_lat_};
  }

 private:
  float lat_rad_ = 0;
  Real sin_lat_ = 0, cos_lat_ = 1;
};

// Unit vectors (N) of coordinates (N).
template <class Real>
std::vector<Point<Real>> unit_vectors(std::span<const float> lat_rad,
                                      std::span<const float> lon_rad, int64_t num_threads = 1);

// Great-circle angle in radians by the haversine formula, in double.
double great_circle_angle(double lat1_rad, double lon1_rad, double lat2_rad, double lon2_rad);

// Squared distance of two points, differences taken in double.
template <class Real>
double squared_distance(const Point<Real>& a, const Point<Real>& b) {
  const double x = static_cast<double>(a[0]) - static_cast<double>(b[0]);
  const double y = static_cast<double>(a[1]) - static_cast<double>(b[1]);
  const double z = static_cast<double>(a[2]) - static_cast<double>(b[2]);
  return x * x + y * y + z * z;
}

// Chord on the unit sphere that spans an arc of this length on the Earth.
double chord_of_arc(double arc_km);
// The arc in km that a chord spans; chords longer than the diameter span half the Earth.
double arc_of_chord(double chord);

constexpr auto enum_table(DegreeArithmetic) {
  using enum DegreeArithmetic;
  return std::to_array<EnumName<DegreeArithmetic>>({{kFloat64, "float64"}, {kFloat32, "float32"}});
}

}  // namespace aifs::graph
