// SPDX-License-Identifier: Apache-2.0
// Lengths and directions of short edges in float32 by polynomials, three times faster than by the
// functions of the mathematical library, and with the same bits: a value that the library would
// round to another float32 is not given.
//
// Both ways compute in double. Their results differ by less than a bound, stated at each function;
// if all numbers within the bound round to one float32, that is the answer (Ziv's test). About one
// edge in ten thousand fails, and all long ones.
#pragma once

#include <array>
#include <cmath>
#include <optional>

namespace aifs::graph {

// Sines and cosines of the ends, by the library.
struct EdgeAngles {
  double source_lat, source_lon, sin_source_lat, cos_source_lat;
  double target_lat, target_lon, sin_target_lat, cos_target_lat, sin_target_lon, cos_target_lon;
};

// As great_circle_angle() rounded to float32, or nothing.
std::optional<float> short_edge_length(const EdgeAngles& angles);
// As the direction in edge_attributes.h, or nothing.
std::optional<std::array<float, 2>> short_edge_direction(const EdgeAngles& angles);

}  // namespace aifs::graph
