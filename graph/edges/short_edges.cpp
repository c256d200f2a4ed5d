// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/short_edges.h"

#include <algorithm>

#include "graph/base/geometry.h"

namespace aifs::graph {

namespace {

constexpr double kMostDifference_rad = 0.25;  // of latitudes and longitudes
constexpr double kMostSine = 0.05;            // of half the length

// sin(x) for |x| <= 1/4: the next term is below 1e-17 of the result.
double small_sine(double x) {
  const double x2 = x * x;
  constexpr double c3 = -1.0 / 6, c5 = 1.0 / 120, c7 = -1.0 / 5040, c9 = 1.0 / 362880,
                   c11 = -1.0 / 39916800;
  return x + x * x2 * (c3 + x2 * (c5 + x2 * (c7 + x2 * (c9 + x2 * c11))));
}

// asin(x) for 0 <= x <= 1/20: the next term is below 1e-17 of the result.
double small_arc_sine(double x) {
  const double x2 = x * x;
  constexpr double c3 = 1.0 / 6, c5 = 3.0 / 40, c7 = 15.0 / 336, c9 = 105.0 / 3456,
                   c11 = 945.0 / 42240;
  return x + x * x2 * (c3 + x2 * (c5 + x2 * (c7 + x2 * (c9 + x2 * c11))));
}

// The difference of two longitudes in (-pi, pi]; 2 pi is subtracted in two parts, so that its
// rounding does not count.
double shorter_way(double dlon) {
  constexpr double kTurn = 2 * kPi, kRestOfTurn = -2.4492935982947064e-16;
  if (dlon > kPi) return (dlon - kTurn) + kRestOfTurn;
  if (dlon < -kPi) return (dlon + kTurn) - kRestOfTurn;
  return dlon;
}

// What all numbers at most `bound` from `value` round to.
std::optional<float> rounded(double value, double bound) {
  const auto low = static_cast<float>(value - bound), high = static_cast<float>(value + bound);
  if (low != high) return std::nullopt;
  return low;
}

}  // namespace

std::optional<float> short_edge_length(const EdgeAngles& a) {
  const double dlat = a.source_lat - a.target_lat;
  const double dlon = shorter_way(a.source_lon - a.target_lon);
  if (std::max(std::abs(dlat), std::abs(dlon)) > kMostDifference_rad) return std::nullopt;
  const double cosines = a.cos_source_lat * a.cos_target_lat;
  if (cosines < 0) return std::nullopt;  // float32 of a pole is beyond it
  const double sin_dlat = small_sine(dlat / 2), sin_dlon = small_sine(dlon / 2);
  const double sine = std::sqrt(sin_dlat * sin_dlat + cosines * sin_dlon * sin_dlon);
  if (sine > kMostSine) return std::nullopt;
  const double angle = 2 * small_arc_sine(sine);
  // Both ways are sums of positive terms: a dozen roundings of 1.1e-16 each.
  return rounded(angle, 4e-15 * angle);
}

std::optional<std::array<float, 2>> short_edge_direction(const EdgeAngles& a) {
  constexpr double kLeastLength = 1e-6;
  const double dlat = a.source_lat - a.target_lat;
  const double dlon = shorter_way(a.source_lon - a.target_lon);
  if (std::max(std::abs(dlat), std::abs(dlon)) > kMostDifference_rad) return std::nullopt;
  const double half = small_sine(dlon / 2);
  const double east = a.cos_source_lat * small_sine(dlon);
  // sin(dlat) + sin(target) cos(source) (1 - cos(dlon)): without the cancellation of the formula
  // of edge_attributes.cpp, which makes an error of up to 1e-15.
  const double north = small_sine(dlat) + a.sin_target_lat * a.cos_source_lat * 2 * half * half;
  const double x = -north * a.cos_target_lon - east * a.sin_target_lon;
  const double y = -north * a.sin_target_lon + east * a.cos_target_lon;
  const double length = std::sqrt(x * x + y * y);
  if (length < kLeastLength) return std::nullopt;
  const double scale = 1 / length;
  const double bound = 2e-15 + 5e-15 * scale;
  const auto first = rounded(x * scale, bound), second = rounded(y * scale, bound);
  if (!first || !second) return std::nullopt;
  return std::array<float, 2>{*first, *second};
}

}  // namespace aifs::graph
