// SPDX-License-Identifier: Apache-2.0
// The dates of a dataset as an axis without gaps. Pure.
//
// Anemoi has stored missing dates in two ways: with a row that holds nothing (up to 0.5.36 and from
// 0.5.47 on), and by leaving the row out, although `frequency` still promises equal steps (0.5.37
// to 0.5.40). Here every date between first and last has a row; some have nothing behind them. So
// "row + 1" is always "one step later".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace aifs::data {

struct TimeAxis {
  std::vector<int64_t> dates_s;  // (rows) every frequency_s
  int64_t frequency_s = 0;
  std::vector<int64_t> stored_rows;   // (rows) row of the stored arrays, -1 if there is none
  std::vector<int64_t> missing_rows;  // ascending: without a stored row, or declared missing
};

// `frequency_s`: what the dataset declares; without it the first two dates say it. Declared dates
// that are not on the axis are ignored. Throws DataError, with the word "dates" or "frequency", if
// the dates are not ascending, are no times, or do not lie on an axis of that frequency.
TimeAxis make_time_axis(std::span<const int64_t> stored_dates_s, std::optional<int64_t> frequency_s,
                        std::span<const int64_t> missing_dates_s);

// Returns the row of a date, or -1 for a date that is not among those of the rows (ascending), and
// for a row that is missing.
int64_t find_row(std::span<const int64_t> dates_s, std::span<const int64_t> missing_rows,
                 int64_t date_s);

}  // namespace aifs::data
