// SPDX-License-Identifier: Apache-2.0
// The number of elements of an array.
#pragma once

#include <cstdint>
#include <span>

namespace aifs {

// The product of the lengths of all axes; 1 without any. Does not look for overflow.
inline int64_t product(std::span<const int64_t> lengths) {
  int64_t result = 1;
  for (const int64_t length : lengths)
    result *= length;
  return result;
}

}  // namespace aifs
