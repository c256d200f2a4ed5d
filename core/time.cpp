// SPDX-License-Identifier: Apache-2.0
#include "core/time.h"

#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <regex>

#include "core/check.h"

namespace aifs {

namespace {

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
              "write it as ISO 8601 does: 2020, 2020-01, 2020-01-31 or 2020-01-31T06:00:00");
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

namespace {

// A span of time that a text names: "2020-02" is a month. [begin_s, end_s).
struct Period {
  int64_t begin_s = 0, end_s = 0;
};

int number_or(const std::ssub_match& digits, int otherwise) {
  return digits.matched ? static_cast<int>(to_number(digits)) : otherwise;
}

int64_t new_year(int64_t year) {
  return from_calendar({.year = year});
}

// Monday of the first week (ISO 8601): the one with 4 January.
int64_t first_week(int64_t year) {
  const int64_t day = new_year(year) / kDay_s + 3;  // 1970-01-01 was a Thursday
  const int64_t weekday = ((day + 3) % 7 + 7) % 7;  // Monday is 0
  return (day - weekday) * kDay_s;
}

std::optional<Period> calendar_period(const std::string& text) {
  static const std::regex kDate(R"((\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?|(\d{2})(\d{2})?)?)");
  std::smatch match;
  if (!std::regex_match(text, match, kDate)) return std::nullopt;
  CalendarTime time{.year = to_number(match[1])};
  const bool has_month = match[2].matched || match[4].matched;
  const bool has_day = match[3].matched || match[5].matched;
  if (!has_month) return Period{new_year(time.year), new_year(time.year + 1)};
  time.month = match[2].matched ? number_or(match[2], 1) : number_or(match[4], 1);
  if (time.month < 1 || time.month > 12) return std::nullopt;
  const int last_day = days_in_month(time.year, time.month);
  time.day = match[3].matched ? number_or(match[3], 1) : number_or(match[5], 1);
  if (time.day < 1 || time.day > last_day) return std::nullopt;
  const int64_t begin_s = from_calendar(time);
  return Period{begin_s, begin_s + (has_day ? 1 : last_day) * kDay_s};
}

// "2020-W02-5", "2020-031".
std::optional<Period> week_or_ordinal_period(const std::string& text) {
  static const std::regex kWeek(R"((\d{4})-?W(\d{2})(?:-?([1-7]))?)"),
      kOrdinal(R"((\d{4})-?(\d{3}))");
  std::smatch match;
  if (std::regex_match(text, match, kWeek)) {
    const int64_t year = to_number(match[1]), week = to_number(match[2]);
    const int64_t monday = first_week(year) + (week - 1) * 7 * kDay_s;
    if (week < 1 || monday >= first_week(year + 1)) return std::nullopt;
    if (!match[3].matched) return Period{monday, monday + 7 * kDay_s};
    const int64_t day = monday + (to_number(match[3]) - 1) * kDay_s;
    return Period{day, day + kDay_s};
  }
  if (std::regex_match(text, match, kOrdinal)) {
    const int64_t year = to_number(match[1]), day = to_number(match[2]);
    const int64_t begin_s = new_year(year) + (day - 1) * kDay_s;
    if (day < 1 || begin_s >= new_year(year + 1)) return std::nullopt;
    return Period{begin_s, begin_s + kDay_s};
  }
  return std::nullopt;
}

// A time of day, counted from midnight UTC.
std::optional<Period> time_period(const std::string& text) {
  static const std::regex kTime(R"((?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:[.,]0{1,9})?)?)?)"
                                R"(|(\d{2})(\d{2})(?:(\d{2})(?:[.,]0{1,9})?)?))"
                                R"( ?([Zz]|[+-]\d{1,2}(?::?\d{2})?)?)");
  static const std::regex kOffset(R"(([+-])(\d{1,2}):?(\d{2})?)");
  std::smatch match;
  if (!std::regex_match(text, match, kTime)) return std::nullopt;
  const size_t first = match[1].matched ? 1 : 4;  // with colons, or without
  const int hour = number_or(match[first], 0), minute = number_or(match[first + 1], 0),
            second = number_or(match[first + 2], 0);
  const bool is_midnight = hour == 24 && minute == 0 && second == 0;
  if ((hour > 23 && !is_midnight) || minute > 59 || second > 59) return std::nullopt;
  int64_t offset_s = 0;
  const std::string zone = match[7];
  if (std::smatch parts; std::regex_match(zone, parts, kOffset)) {
    if (number_or(parts[2], 0) > 23 || number_or(parts[3], 0) > 59) return std::nullopt;
    offset_s =
        (parts[1] == "-" ? -1 : 1) * (number_or(parts[2], 0) * 3600 + number_or(parts[3], 0) * 60);
  }
  const int64_t begin_s = hour * 3600 + minute * 60 + second - offset_s;
  const int64_t length_s = match[first + 2].matched ? 1 : match[first + 1].matched ? 60 : 3600;
  return Period{begin_s, begin_s + length_s};
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1));
}

}  // namespace

int64_t parse_date(std::string_view text, DateEnd end) {
  if (text.size() > kLongest) bad_date(text);
  const std::string copy = trimmed(text);
  const size_t between = copy.find_first_of("Tt ");
  const std::string date = copy.substr(0, between);
  auto period = calendar_period(date);
  if (!period) period = week_or_ordinal_period(date);
  if (!period) bad_date(text);
  if (between != std::string::npos) {
    const auto time = time_period(copy.substr(between + 1));
    const bool is_day = period->end_s - period->begin_s == kDay_s;
    if (!time || !is_day) bad_date(text);
    period = Period{period->begin_s + time->begin_s, period->begin_s + time->end_s};
  }
  return end == DateEnd::kStart ? period->begin_s : period->end_s - 1;
}

namespace {

// "1.5" times so many seconds; nothing if that is no number, or no whole number of seconds.
std::optional<int64_t> whole_seconds(const std::string& amount, int64_t factor_s) {
  static const std::regex kDecimal(R"((\d{1,9})(?:[.,](\d{1,9}))?)");
  std::smatch match;
  if (!std::regex_match(amount, match, kDecimal)) return std::nullopt;
  int64_t parts = 1, fraction = 0;
  for (const char digit : match[2].str()) {
    parts *= 10;
    fraction = 10 * fraction + (digit - '0');
  }
  if (fraction * factor_s % parts != 0) return std::nullopt;
  return to_number(match[1]) * factor_s + fraction * factor_s / parts;
}

}  // namespace

int64_t parse_duration(std::string_view text) {
  static const std::regex kWithUnit(R"(\s*([+-]?)(\d{1,12})\s*([hdms]?)\s*)", std::regex::icase);
  static const std::regex kIso(R"(\s*([+-]?)P(?:([\d.,]{1,19})W)?(?:([\d.,]{1,19})D)?)"
                               R"((T(?:([\d.,]{1,19})H)?(?:([\d.,]{1,19})M)?)"
                               R"((?:([\d.,]{1,19})S)?)?\s*)",
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
    const auto part = [&](size_t group, int64_t factor_s) {
      if (!match[group].matched) return int64_t{0};
      const auto amount_s = whole_seconds(match[group], factor_s);
      if (!amount_s) bad_duration(text);
      return *amount_s;
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
