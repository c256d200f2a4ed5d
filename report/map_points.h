// SPDX-License-Identifier: Apache-2.0
// Which points of a grid a page draws, and their values in 8 bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aifs::report {

// Numbers of the points to draw, ascending: all, or `most` at most, evenly spread over the sphere
// (the one nearest to the centre of each cell of an equal-area grid). Deterministic.
std::vector<int64_t> even_points(std::span<const double> latitudes_deg,
                                 std::span<const double> longitudes_deg, int64_t most);

// Codes 1 to 255 lie evenly from `low` to `high`, 0 is no value (NaN, infinity). Both ends are 0 if
// there is no value at all.
struct CodedField {
  double low = 0.0, high = 0.0;
  std::string codes;  // a byte for each point
};
CodedField coded(std::span<const float> field, std::span<const int64_t> points);

}  // namespace aifs::report
