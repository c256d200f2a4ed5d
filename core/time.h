// SPDX-License-Identifier: Apache-2.0
// Dates and durations. A date is a number of seconds since 1970-01-01T00:00:00 UTC (no leap
// seconds), a duration a number of seconds; both int64. The grammars are those of Anemoi.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aifs {

inline constexpr int64_t kDay_s = 86400;

// A calendar date and time of day, UTC, proleptic Gregorian.
struct CalendarTime {
  int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0;
};

CalendarTime to_calendar(int64_t date_s);
int64_t from_calendar(const CalendarTime& time);

// "2020-01-31T06:00:00".
std::string format_date(int64_t date_s);

// Which end of an incomplete date is meant: "2020" starts at 2020-01-01T00:00:00 and ends at
// 2020-12-31T23:59:59.
enum class DateEnd { kStart, kEnd };

// The dates of ISO 8601, and YYYYMM as Anemoi writes it: "2020", "2020-01", "202001", "2020-01-31",
// "20200131", "2020-W05-5", "2020-031"; a day may be followed by "T" or a space and a time: "06",
// "06:00", "0600", "06:00:00", "060000", with ".000", and that by "Z" or an offset from UTC such as
// "+01:00". Months, days and hours may have one digit where they are set apart. Throws Error naming
// the text otherwise, also for fractions of a second.
int64_t parse_date(std::string_view text, DateEnd end = DateEnd::kStart);

// "6h", "1d", "30m", "10s", "6" (hours), "6:00:00", "1 day, 6:00:00", ISO 8601 without years and
// months ("PT6H", "P1DT12H", "P2W", "PT1.5H"), each with an optional sign; letters in either case.
// Throws Error naming the text otherwise, and for what is no whole number of seconds.
int64_t parse_duration(std::string_view text);

// With the largest unit that divides exactly: 86400 -> "1d", 43200 -> "12h", 5400 -> "90m".
std::string format_duration(int64_t duration_s);

// In hours where they divide, as forecasts are named: 86400 -> "24h", 5400 -> "90m".
std::string format_lead_time(int64_t lead_time_s);

// For people: "1 h 03 min", "2 min 05 s", "3.2 s".
std::string format_elapsed(double seconds);

}  // namespace aifs
