// SPDX-License-Identifier: Apache-2.0
// How many of n things each of several parts gets, and where the parts start: the one rule by which
// rows, samples and nodes are shared out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/check.h"

namespace aifs {

// Sums of counts: where each part starts; one more than there are counts, the last is the total.
inline std::vector<int64_t> starts_of(const std::vector<int64_t>& counts) {
  std::vector<int64_t> starts{0};
  for (const int64_t count : counts)
    starts.push_back(starts.back() + count);
  return starts;
}

// n things over `parts`, the first n % parts get one more.
inline std::vector<int64_t> balanced_counts(int64_t n, int64_t parts) {
  AIFS_CHECK(n >= 0 && parts > 0, n, " things over ", parts, " parts");
  std::vector<int64_t> counts;
  for (int64_t p = 0; p < parts; ++p)
    counts.push_back(n / parts + (p < n % parts ? 1 : 0));
  return counts;
}

}  // namespace aifs
