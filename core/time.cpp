// SPDX-License-Identifier: Apache-2.0
#include "core/time.h"

#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <regex>

#include "core/check.h"

namespace aifs {

namespace {

constexpr int64_t kDay_s = 86400;

// std::regex recurses once per character: a long text would end the stack.
constexpr size_t kLongest = 64;

int64_t to_number(const std::string& digits) {
  return std::stoll(digits);
}

int days_in_month(int64_t year, int month) {
  const auto last = std::chrono::year_month_day_last{
      std::chrono::year{static_cast<int>(year)},
      std::chrono::month_day_last{std::chrono::month{static_cast<unsigned>(month)}}};
  return static_cast<int>(static_cast<unsigned>(last.day()));
}

std::string shortened(std::string_view text) {
  return text.size() <= kLongest ? std::string(text) : concat(text.substr(0, kLongest), "...");
}

[[noreturn]] void bad_date(std::string_view text) {
  throw Error(concat("'", shortened(text), "' is not a date"),
              "write YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS");
}

[[noreturn]] void bad_duration(std::string_view text) {
  throw Error(concat("'", shortened(text), "' is not a duration"),
              "write for example 6h, 1d, 30m, 6:00:00 or PT6H");
}

}  // namespace

CalendarTime to_calendar(int64_t date_s) {
  const int64_t days =
      date_s >= 0 ? date_s / kDay_s : -((-date_s + kDay_s - 1) / kDay_s);  // towards the past
  const std::chrono::year_month_day ymd{std::chrono::sys_days{std::chrono::days{days}}};
  const int64_t rest = date_s - days * kDay_s;
  return {static_cast<int>(ymd.year()),
          static_cast<int>(static_cast<unsigned>(ymd.month())),
          static_cast<int>(static_cast<unsigned>(ymd.day())),
          static_cast<int>(rest / 3600),
          static_cast<int>(rest / 60 % 60),
          static_cast<int>(rest % 60)};
}

int64_t from_calendar(const CalendarTime& time) {
  const std::chrono::sys_days days{std::chrono::year{static_cast<int>(time.year)} /
                                   std::chrono::month{static_cast<unsigned>(time.month)} /
                                   std::chrono::day{static_cast<unsigned>(time.day)}};
  return days.time_since_epoch().count() * kDay_s + time.hour * 3600 + time.minute * 60 +
         time.second;
}

std::string format_date(int64_t date_s) {
  const CalendarTime t = to_calendar(date_s);
  char text[48];
  std::snprintf(text, sizeof text, "%04lld-%02d-%02dT%02d:%02d:%02d",
                static_cast<long long>(t.year), t.month, t.day, t.hour, t.minute, t.second);
  return text;
}

int64_t parse_date(std::string_view text, DateEnd end) {
  static const std::regex kPattern(
      R"(\s*(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:[T ](\d{2}):(\d{2}):(\d{2})Z?)?)?)?\s*)");
  if (text.size() > kLongest) bad_date(text);
  const std::string copy(text);
  std::smatch match;
  if (!std::regex_match(copy, match, kPattern)) bad_date(text);
  CalendarTime time;
  time.year = to_number(match[1]);
  const bool at_end = end == DateEnd::kEnd;
  time.month = match[2].matched ? static_cast<int>(to_number(match[2])) : (at_end ? 12 : 1);
  if (time.month < 1 || time.month > 12) bad_date(text);
  const int last_day = days_in_month(time.year, time.month);
  time.day = match[3].matched ? static_cast<int>(to_number(match[3])) : (at_end ? last_day : 1);
  if (time.day < 1 || time.day > last_day) bad_date(text);
  if (match[4].matched) {
    time.hour = static_cast<int>(to_number(match[4]));
    time.minute = static_cast<int>(to_number(match[5]));
    time.second = static_cast<int>(to_number(match[6]));
    if (time.hour > 23 || time.minute > 59 || time.second > 59) bad_date(text);
  } else if (at_end) {
    time.hour = 23;
    time.minute = time.second = 59;
  }
  return from_calendar(time);
}

int64_t parse_duration(std::string_view text) {
  static const std::regex kWithUnit(R"(\s*([+-]?)(\d{1,12})\s*([hdms]?)\s*)", std::regex::icase);
  static const std::regex kIso(R"(\s*([+-]?)P(?:(\d{1,9})W)?(?:(\d{1,9})D)?)"
                               R"((T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?\s*)",
                               std::regex::icase);
  static const std::regex kClock(
      R"(\s*([+-]?)(?:(\d{1,9}) days?,\s*)?(\d{1,9}):(\d{2})(?::(\d{2}))?\s*)");
  if (text.size() > kLongest) bad_duration(text);
  const std::string copy(text);
  std::smatch match;
  if (std::regex_match(copy, match, kWithUnit)) {
    const int64_t sign = match[1] == "-" ? -1 : 1;
    const std::string unit = match[3];
    const char letter =
        unit.empty() ? 'h' : static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0])));
    const int64_t factor = letter == 'd' ? kDay_s : letter == 'h' ? 3600 : letter == 'm' ? 60 : 1;
    return sign * to_number(match[2]) * factor;
  }
  if (std::regex_match(copy, match, kClock)) {
    const int64_t sign = match[1] == "-" ? -1 : 1;
    const int64_t days = match[2].matched ? to_number(match[2]) : 0;
    const int64_t seconds = match[5].matched ? to_number(match[5]) : 0;
    return sign * (days * kDay_s + to_number(match[3]) * 3600 + to_number(match[4]) * 60 + seconds);
  }
  if (std::regex_match(copy, match, kIso)) {
    // "P", "PT" and "P1DT" name no amount where one must stand.
    const bool has_date = match[2].matched || match[3].matched;
    const bool has_time = match[5].matched || match[6].matched || match[7].matched;
    if (match[4].matched ? !has_time : !has_date) bad_duration(text);
    const auto part = [&](size_t group, int64_t factor) {
      return match[group].matched ? to_number(match[group]) * factor : 0;
    };
    return (match[1] == "-" ? -1 : 1) *
           (part(2, 7 * kDay_s) + part(3, kDay_s) + part(5, 3600) + part(6, 60) + part(7, 1));
  }
  bad_duration(text);
}

std::string format_duration(int64_t duration_s) {
  const char* sign = duration_s < 0 ? "-" : "";
  const int64_t size = std::abs(duration_s);
  if (size == 0) return "0h";
  if (size % kDay_s == 0) return concat(sign, size / kDay_s, "d");
  if (size % 3600 == 0) return concat(sign, size / 3600, "h");
  if (size % 60 == 0) return concat(sign, size / 60, "m");
  return concat(sign, size, "s");
}

std::string format_lead_time(int64_t lead_time_s) {
  if (lead_time_s % 3600 == 0) return concat(lead_time_s / 3600, "h");
  return format_duration(lead_time_s);
}

std::string format_elapsed(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  char text[64];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  } else if (seconds < 3600) {
    const auto whole = static_cast<long long>(seconds);
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    const auto minutes = static_cast<long long>(seconds / 60);
    std::snprintf(text, sizeof text, "%lld h %02lld min", minutes / 60, minutes % 60);
  }
  return text;
}

}  // namespace aifs
