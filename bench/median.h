// SPDX-License-Identifier: Apache-2.0
// The middle of repeated measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace aifs::bench {

// Returns the median; of an even number of values the larger of the two in the middle.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace aifs::bench
