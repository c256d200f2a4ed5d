// SPDX-License-Identifier: Apache-2.0
// Whether one set of forecasts is better than another, and how sure that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aifs::verify {

// Mean squared errors of one date, of a forecast and of what it is compared with.
struct ErrorPair {
  double own = 0.0, other = 0.0;
};

// 1 - RMSE / RMSE of the other, over all dates, and the interval that holds 95 % of what samples of
// the dates give (bootstrap, pairs drawn with replacement). NaN if the other has no error; the
// interval is NaN for fewer than kFewestDates.
inline constexpr size_t kFewestDates = 5;
struct Skill {
  double value = 0.0, low = 0.0, high = 0.0;

  // True if the interval does not hold 0.
  bool is_significant() const { return low > 0.0 || high < 0.0; }
};

// `pairs` is not empty. The same pairs give the same bits.
Skill bootstrap_skill(std::span<const ErrorPair> pairs, int64_t num_samples = 1000);

}  // namespace aifs::verify
