// SPDX-License-Identifier: Apache-2.0
// Time that has passed.
#pragma once

#include <chrono>

namespace aifs {

// Returns the seconds from `start` until now.
inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace aifs
