// SPDX-License-Identifier: Apache-2.0
#include "data/sources/cf_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/join.h"
#include "core/time.h"

namespace aifs::data {

namespace {

constexpr std::array kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr std::string_view kSince = " since ";

std::optional<double> unit_seconds(std::string name) {
  name = lower_case(name);
  if (name.size() > 3 && name.ends_with('s')) name.pop_back();  // plural
  for (const auto& [seconds, names] : {std::pair{1e-6, std::array{"microsecond", "microsec", "us"}},
                                       {1e-3, {"millisecond", "millisec", "ms"}},
                                       {1.0, {"second", "sec", "s"}},
                                       {60.0, {"minute", "min", "min"}},
                                       {3600.0, {"hour", "hr", "h"}},
                                       {kDay_s, {"day", "d", "d"}},
                                       {7.0 * kDay_s, {"week", "week", "week"}}}) {
    for (const char* known : names) {
      if (name == known) return seconds;
    }
  }
  return std::nullopt;
}

// "1980-1-14 14:00:00.0 +01:00", "1980-01-14T14Z", "1-1-1".
struct Reference {
  int64_t year = 0;
  int month = 1, day = 1;
  double second = 0.0;  // of the day, UTC
};

std::optional<Reference> parse_reference(std::string text) {
  for (char& c : text) {
    if (c == 'T' || c == 't') c = ' ';
  }
  Reference r;
  long long year = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), " %lld-%d-%d%n", &year, &r.month, &r.day, &used) != 3)
    return std::nullopt;
  r.year = year;
  std::string rest = text.substr(static_cast<size_t>(used));
  int hour = 0, minute = 0;
  double second = 0.0;
  if (std::sscanf(rest.c_str(), " %2d:%2d:%lf%n", &hour, &minute, &second, &used) == 3 ||
      (second = 0.0, std::sscanf(rest.c_str(), " %2d:%2d%n", &hour, &minute, &used) == 2) ||
      (minute = 0, std::sscanf(rest.c_str(), " %2d%n", &hour, &used) == 1 && rest[0] == ' '))
    rest = rest.substr(static_cast<size_t>(used));
  rest.erase(std::remove(rest.begin(), rest.end(), ' '), rest.end());
  const std::string zone = lower_case(rest);
  int zone_hour = 0, zone_minute = 0;
  if (!zone.empty() && zone != "z" && zone != "utc" && zone != "gmt") {
    char sign = 0;
    const auto length = static_cast<int>(zone.size());
    const auto is_read = [&](const char* format, int wanted) {
      used = 0;
      zone_minute = 0;
      const int got = std::sscanf(zone.c_str(), format, &sign, &zone_hour, &zone_minute, &used);
      return got == wanted && used == length;
    };
    const bool is_hour =
        std::sscanf(zone.c_str(), "%c%2d%n", &sign, &zone_hour, &used) == 2 && used == length;
    const bool is_offset = is_read("%c%2d:%2d%n", 3) || is_read("%c%2d%2d%n", 3) || is_hour;
    if (!is_offset || (sign != '+' && sign != '-')) return std::nullopt;
    if (sign == '-') zone_hour = -zone_hour, zone_minute = -zone_minute;
  }
  const bool is_time = hour >= 0 && hour <= 24 && minute >= 0 && minute < 60 && second >= 0.0 &&
                       second < 61.0 && r.month >= 1 && r.month <= 12 && r.day >= 1 && r.day <= 31;
  if (!is_time) return std::nullopt;
  r.second = 3600.0 * (hour - zone_hour) + 60.0 * (minute - zone_minute) + second;
  return r;
}

int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Days from 1970-01-01 of the real calendar to a date of the Julian one.
int64_t julian_days(int64_t year, int month, int day) {
  const int64_t a = (14 - month) / 12, y = year + 4800 - a, m = month + 12 * a - 3;
  constexpr int64_t kEpoch = 2440588;  // Julian day number of 1970-01-01
  return day + (153 * m + 2) / 5 + 365 * y + floor_divide(y, 4) - 32083 - kEpoch;
}

int64_t gregorian_days(int64_t year, int month, int day) {
  const int64_t a = (14 - month) / 12, y = year + 4800 - a, m = month + 12 * a - 3;
  constexpr int64_t kEpoch = 2440588;
  return day + (153 * m + 2) / 5 + 365 * y + floor_divide(y, 4) - floor_divide(y, 100) +
         floor_divide(y, 400) - 32045 - kEpoch;
}

}  // namespace

bool is_cf_time(const std::string& units) {
  return lower_case(units).find(kSince) != std::string::npos;
}

CfTime::Calendar CfTime::parse_calendar(const std::string& name) {
  const std::string text = lower_case(name);
  if (text.empty() || text == "standard" || text == "gregorian") return Calendar::kStandard;
  if (text == "proleptic_gregorian") return Calendar::kProleptic;
  if (text == "julian") return Calendar::kJulian;
  if (text == "noleap" || text == "365_day") return Calendar::kNoLeap;
  if (text == "all_leap" || text == "366_day") return Calendar::kAllLeap;
  if (text == "360_day") return Calendar::k360Day;
  throw DataError(concat("calendar '", name.substr(0, 40), "' is not supported"),
                  "standard, gregorian, proleptic_gregorian, julian, noleap, 365_day, all_leap, "
                  "366_day and 360_day are");
}

int64_t CfTime::days_before(int64_t year, int month, int day) const {
  if (calendar_ == Calendar::k360Day) return 360 * year + 30 * (month - 1) + day - 1;
  if (calendar_ == Calendar::kNoLeap || calendar_ == Calendar::kAllLeap) {
    int64_t days = (calendar_ == Calendar::kNoLeap ? 365 : 366) * year + day - 1;
    for (int m = 1; m < month; ++m)
      days += kMonthDays[static_cast<size_t>(m - 1)] +
              (m == 2 && calendar_ == Calendar::kAllLeap ? 1 : 0);
    return days;
  }
  const bool is_old = year < 1582 || (year == 1582 && (month < 10 || (month == 10 && day < 15)));
  if (calendar_ == Calendar::kJulian || (calendar_ == Calendar::kStandard && is_old))
    return julian_days(year, month, day);
  return gregorian_days(year, month, day);
}

CfTime::CfTime(const std::string& units, const std::string& calendar)
    : calendar_(parse_calendar(calendar)) {
  const size_t since = lower_case(units).find(kSince);
  const std::string shown = units.substr(0, 60);
  if (since == std::string::npos)
    throw DataError(concat("units '", shown, "' are no time since a date"));
  std::string unit = units.substr(0, since);
  unit.erase(0, unit.find_first_not_of(' '));
  const auto seconds = unit_seconds(unit);
  if (!seconds) {
    throw DataError(concat("units '", shown, "': '", unit, "' has no fixed length"),
                    "seconds, minutes, hours, days and weeks have");
  }
  const auto reference = parse_reference(units.substr(since + kSince.size()));
  if (!reference) throw DataError(concat("units '", shown, "' name no date that can be read"));
  unit_s_ = *seconds;
  reference_day_ = days_before(reference->year, reference->month, reference->day);
  reference_s_ = reference->second;
}

int64_t CfTime::to_date(double count) const {
  const double seconds = reference_s_ + count * unit_s_;
  if (!(std::abs(seconds) < 1e12)) throw DataError(concat("the time ", count, " is out of range"));
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const int64_t day = reference_day_ + floor_divide(whole, 86400);
  const int64_t second = whole - floor_divide(whole, 86400) * 86400;
  if (calendar_ != Calendar::kNoLeap && calendar_ != Calendar::kAllLeap &&
      calendar_ != Calendar::k360Day)
    return day * 86400 + second;
  const int64_t year_days = calendar_ == Calendar::kNoLeap    ? 365
                            : calendar_ == Calendar::kAllLeap ? 366
                                                              : 360;
  CalendarTime time{.year = floor_divide(day, year_days)};
  int64_t rest = day - time.year * year_days;
  for (time.month = 1; time.month < 12; ++time.month) {
    const int64_t length = calendar_ == Calendar::k360Day
                               ? 30
                               : kMonthDays[static_cast<size_t>(time.month - 1)] +
                                     (time.month == 2 && calendar_ == Calendar::kAllLeap ? 1 : 0);
    if (rest < length) break;
    rest -= length;
  }
  time.day = static_cast<int>(rest) + 1;
  time.hour = static_cast<int>(second / 3600);
  time.minute = static_cast<int>(second / 60 % 60);
  time.second = static_cast<int>(second % 60);
  const bool is_leap = time.year % 4 == 0 && (time.year % 100 != 0 || time.year % 400 == 0);
  const int most =
      kMonthDays[static_cast<size_t>(time.month - 1)] + (time.month == 2 && is_leap ? 1 : 0);
  if (time.day > most || time.year < 0 || time.year > 9999) {
    throw DataError(concat("the time ", count, " is ", time.year, "-", time.month, "-", time.day,
                           " in the calendar of the file, which is no date"));
  }
  return from_calendar(time);
}

}  // namespace aifs::data
