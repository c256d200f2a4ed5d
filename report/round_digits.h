// SPDX-License-Identifier: Apache-2.0
// Numbers with no more digits than a page needs.
#pragma once

#include <cmath>

namespace aifs::report {

// The nearest number of so many significant decimal digits; NaN and infinity as they are.
inline double rounded(double value, int digits) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const int places = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (places > 300 || places < -300) return value;
  // Powers of ten above one are exact, so that the result prints short.
  const double unit = std::pow(10.0, std::abs(places));
  return places >= 0 ? std::round(value * unit) / unit : std::round(value / unit) * unit;
}

}  // namespace aifs::report
