// SPDX-License-Identifier: Apache-2.0
#include "data/fields/selection.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

// Anemoi's guard against rounding in percentages.
constexpr double kSlack = 0x1p-30;

std::string describe(std::span<const int64_t> dates_s, int64_t frequency_s) {
  return concat("the dataset has ", dates_s.size(), " dates from ", format_date(dates_s.front()),
                " to ", format_date(dates_s.back()), ", every ", format_duration(frequency_s));
}

double parse_percentage(const std::string& path, const std::string& text) {
  char* end = nullptr;
  const double percentage = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || std::string(end) != "%" || !(percentage >= 0 && percentage <= 100)) {
    throw ConfigError(path, concat("'", text, "' is not a percentage from 0% to 100%"));
  }
  return percentage;
}

int64_t parse_date_option(const std::string& path, const std::string& text, DateEnd which) {
  try {
    return parse_date(text, which);
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

// First row at or after the start.
int64_t first_row(std::span<const int64_t> dates_s, const DatasetOptions& options) {
  const std::string& start = options.start;
  if (start.empty()) return 0;
  const auto num_rows = static_cast<double>(dates_s.size());
  if (start.ends_with('%')) {
    const double rows = parse_percentage(options.start_path, start) * num_rows / 100.0;
    return static_cast<int64_t>(std::min(std::trunc(rows - kSlack), num_rows - 1));
  }
  if (!is_date(start)) {  // an hour of the first day
    const std::string day = format_date(dates_s.front()).substr(0, 11);
    const int64_t hour_s = parse_date_option(options.start_path, day + start, DateEnd::kStart);
    return std::lower_bound(dates_s.begin(), dates_s.end(), hour_s) - dates_s.begin();
  }
  const int64_t date_s = parse_date_option(options.start_path, start, DateEnd::kStart);
  return std::lower_bound(dates_s.begin(), dates_s.end(), date_s) - dates_s.begin();
}

// Row behind the last one at or before the end.
int64_t end_row(std::span<const int64_t> dates_s, const DatasetOptions& options) {
  const std::string& end = options.end;
  const auto num_rows = static_cast<double>(dates_s.size());
  if (end.empty()) return static_cast<int64_t>(dates_s.size());
  if (end.ends_with('%')) {
    const double rows = parse_percentage(options.end_path, end) * num_rows / 100.0;
    return static_cast<int64_t>(std::max(std::trunc(rows + kSlack), 1.0));
  }
  const int64_t date_s = parse_date_option(options.end_path, end, DateEnd::kEnd);
  return std::upper_bound(dates_s.begin(), dates_s.end(), date_s) - dates_s.begin();
}

int64_t row_step(std::span<const int64_t> dates_s, int64_t frequency_s,
                 const DatasetOptions& options) {
  const std::string& wanted = options.frequency;
  if (wanted.empty()) return 1;
  const std::string path = options.path + ".frequency";
  int64_t wanted_s = 0;
  try {
    wanted_s = parse_duration(wanted);
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
  if (wanted_s < frequency_s || wanted_s % frequency_s != 0) {
    throw ConfigError(path,
                      concat("'", wanted, "' is not a multiple of ", format_duration(frequency_s)),
                      describe(dates_s, frequency_s));
  }
  return wanted_s / frequency_s;
}

int64_t find(const std::vector<std::string>& variables, const std::string& path,
             const std::string& name) {
  const auto found = std::find(variables.begin(), variables.end(), name);
  if (found == variables.end()) {
    throw ConfigError(path, concat("the dataset has no variable '", name, "'"),
                      nearest_names(name, variables));
  }
  return found - variables.begin();
}

}  // namespace

std::vector<int64_t> select_rows(std::span<const int64_t> dates_s, int64_t frequency_s,
                                 const DatasetOptions& options) {
  const int64_t first = first_row(dates_s, options);
  const int64_t end = end_row(dates_s, options);
  if (first >= end) {
    const auto or_open = [](const std::string& text) { return text.empty() ? "(open)" : text; };
    throw ConfigError(options.start.empty() ? options.end_path : options.start_path,
                      concat("no date lies between ", or_open(options.start), " and ",
                             or_open(options.end), "; ", describe(dates_s, frequency_s)));
  }
  const int64_t step = row_step(dates_s, frequency_s, options);
  std::vector<int64_t> rows;
  for (int64_t row = first; row < end; row += step)
    rows.push_back(row);
  return rows;
}

std::vector<int64_t> select_columns(const std::vector<std::string>& variables,
                                    const DatasetOptions& options) {
  std::vector<int64_t> columns;
  for (const std::string& name : options.select.empty() ? variables : options.select) {
    const int64_t column = find(variables, options.path + ".select", name);
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      throw ConfigError(options.path + ".select", concat("'", name, "' is named twice"));
    }
    columns.push_back(column);
  }
  for (const std::string& name : options.drop) {
    const int64_t dropped = find(variables, options.path + ".drop", name);
    if (std::erase(columns, dropped) == 0) {
      throw ConfigError(options.path + ".drop",
                        concat("'", name, "' is not there any more: not selected, or named twice"));
    }
  }
  if (columns.empty()) throw ConfigError(options.path + ".drop", "no variable is left");
  return columns;
}

}  // namespace aifs::data
