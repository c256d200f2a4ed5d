// SPDX-License-Identifier: Apache-2.0
// Times of netCDF files as the CF conventions write them ("hours since 1980-01-14 14:00:00" and a
// calendar; CF 1.11, section 4.4), as dates of the real calendar. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace aifs::data {

class CfTime {
 public:
  // `calendar`: empty is "standard". Throws DataError, without the name of a file, for units that
  // are no time since a date, for months and years (which have no one length), and for unknown
  // calendars; it lists what there is.
  CfTime(const std::string& units, const std::string& calendar);

  // Seconds since 1970 UTC, to the nearest second. Of calendars whose years differ from real ones
  // (noleap, all_leap, 360_day) the date of the same name. Throws DataError if there is no such
  // date, as 30 February, or if the count is no number or beyond the years 0 to 9999.
  int64_t to_date(double count) const;

 private:
  enum class Calendar { kStandard, kProleptic, kJulian, kNoLeap, kAllLeap, k360Day };
  static Calendar parse_calendar(const std::string& name);
  int64_t days_before(int64_t year, int month, int day) const;  // in the calendar, from some origin

  Calendar calendar_;
  double unit_s_ = 1.0;
  int64_t reference_day_ = 0;
  double reference_s_ = 0.0;  // within the day, UTC
};

// True if units say that a coordinate is a time.
bool is_cf_time(const std::string& units);

}  // namespace aifs::data
