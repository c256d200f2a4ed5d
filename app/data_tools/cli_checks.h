// SPDX-License-Identifier: Apache-2.0
// Checks of numbers on command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace aifs::app {

// CLI11's own PositiveNumber says "not in range 0.000000 to" the largest double.
inline CLI::Range at_least(int64_t least) {
  return {least, int64_t{1} << 40, least > 0 ? "POSITIVE" : "NONNEGATIVE"};
}

}  // namespace aifs::app
