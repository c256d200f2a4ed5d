// SPDX-License-Identifier: Apache-2.0
#include "data/fields/time_axis.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"
#include "data/zarr/dtype.h"

namespace aifs::data {

namespace {

// More absent rows than this are damage, not missing dates.
constexpr int64_t kMaxGrowth = 4;
constexpr int64_t kMaxExtraRows = 1000;

void check_ascending(std::span<const int64_t> dates_s) {
  if (dates_s.empty()) throw DataError("dates: there are none");
  for (size_t i = 0; i < dates_s.size(); ++i) {
    if (dates_s[i] == zarr::kNotATime) {
      throw DataError(concat("dates: number ", i, " is not a time (NaT)"));
    }
    if (i > 0 && dates_s[i] <= dates_s[i - 1]) {
      throw DataError(concat("dates are not ascending: ", format_date(dates_s[i - 1]),
                             " is followed by ", format_date(dates_s[i])));
    }
  }
}

int64_t resolve_frequency(std::span<const int64_t> dates_s, std::optional<int64_t> declared_s) {
  if (declared_s && *declared_s <= 0) {
    throw DataError(concat("frequency ", format_duration(*declared_s), " is not positive"));
  }
  if (dates_s.size() < 2) {
    if (!declared_s) throw DataError("frequency is not given, and there is only one date");
    return *declared_s;
  }
  const int64_t first_step_s = dates_s[1] - dates_s[0];
  if (!declared_s) return first_step_s;
  bool equal_steps = true;
  for (size_t i = 1; i < dates_s.size(); ++i)
    equal_steps = equal_steps && dates_s[i] - dates_s[i - 1] == first_step_s;
  if (equal_steps && first_step_s != *declared_s) {
    throw DataError(concat("frequency is declared as ", format_duration(*declared_s),
                           ", but the dates are ", format_duration(first_step_s), " apart"));
  }
  return *declared_s;
}

// Row of each stored date on the full axis.
std::vector<int64_t> place(std::span<const int64_t> dates_s, int64_t frequency_s) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < dates_s.size(); ++i) {
    const int64_t distance_s = dates_s[i] - dates_s[0];
    if (distance_s % frequency_s != 0) {
      throw DataError(concat("dates are irregular: ", format_date(dates_s[i - 1]),
                             " is followed by ", format_date(dates_s[i]), ", the frequency is ",
                             format_duration(frequency_s)));
    }
    rows.push_back(distance_s / frequency_s);
  }
  const auto num_stored = static_cast<int64_t>(dates_s.size());
  if (rows.back() >= kMaxGrowth * num_stored + kMaxExtraRows) {
    throw DataError(concat("dates have gaps: there are ", num_stored, " of ", rows.back() + 1,
                           " between ", format_date(dates_s.front()), " and ",
                           format_date(dates_s.back()), " every ", format_duration(frequency_s)));
  }
  return rows;
}

}  // namespace

TimeAxis make_time_axis(std::span<const int64_t> stored_dates_s, std::optional<int64_t> frequency_s,
                        std::span<const int64_t> missing_dates_s) {
  check_ascending(stored_dates_s);
  TimeAxis axis;
  axis.frequency_s = resolve_frequency(stored_dates_s, frequency_s);
  const std::vector<int64_t> rows = place(stored_dates_s, axis.frequency_s);
  axis.stored_rows.assign(static_cast<size_t>(rows.back()) + 1, -1);
  for (size_t i = 0; i < rows.size(); ++i)
    axis.stored_rows[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);

  std::vector<int64_t> declared(missing_dates_s.begin(), missing_dates_s.end());
  std::sort(declared.begin(), declared.end());
  for (size_t row = 0; row < axis.stored_rows.size(); ++row) {
    axis.dates_s.push_back(stored_dates_s[0] + static_cast<int64_t>(row) * axis.frequency_s);
    if (axis.stored_rows[row] < 0 ||
        std::binary_search(declared.begin(), declared.end(), axis.dates_s.back())) {
      axis.missing_rows.push_back(static_cast<int64_t>(row));
    }
  }
  return axis;
}

int64_t find_row(std::span<const int64_t> dates_s, std::span<const int64_t> missing_rows,
                 int64_t date_s) {
  const auto found = std::lower_bound(dates_s.begin(), dates_s.end(), date_s);
  if (found == dates_s.end() || *found != date_s) return -1;
  const int64_t row = found - dates_s.begin();
  return std::binary_search(missing_rows.begin(), missing_rows.end(), row) ? -1 : row;
}

}  // namespace aifs::data
