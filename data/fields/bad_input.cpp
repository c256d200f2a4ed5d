// SPDX-License-Identifier: Apache-2.0
#include "data/fields/bad_input.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

namespace {

constexpr float kNetcdfFill = 9.9692099683868690e+36f;  // NC_FILL_FLOAT and NC_FILL_DOUBLE
constexpr double kAbsurd = 1e6;                         // times the largest stored magnitude
constexpr double kAbsurdAlone = 1e15;                   // where nothing is known of the variable

// Magnitudes beyond which a variable's values are absurd.
std::vector<float> limits_of(const DatasetInfo& info) {
  const Statistics& s = info.statistics;
  std::vector<float> limits(info.variables.size(), static_cast<float>(kAbsurdAlone));
  for (size_t v = 0; v < std::min(s.minimum.size(), s.maximum.size()); ++v) {
    const double largest = std::max(std::abs(s.minimum[v]), std::abs(s.maximum[v]));
    if (std::isfinite(largest) && largest > 0.0) limits[v] = static_cast<float>(kAbsurd * largest);
  }
  return limits;
}

// Returns where the first value is that `is_bad(value, column)`, or -1.
template <class IsBad>
int64_t find(std::span<const float> values, size_t width, IsBad&& is_bad) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_bad(values[i], i % width)) return static_cast<int64_t>(i);
  }
  return -1;
}

bool is_infinite_or_fill(float value) {
  return std::isinf(value) || std::abs(value) == kNetcdfFill;
}

std::string degrees(double value, const char* positive, const char* negative) {
  return concat(std::abs(value), " ", value < 0.0 ? negative : positive);
}

std::string reason(float value, size_t column, const Statistics& s) {
  if (std::isinf(value)) return "infinite";
  if (std::abs(value) == kNetcdfFill) return "the fill value of netCDF, no number";
  if (column >= s.minimum.size() || column >= s.maximum.size()) return "absurdly large";
  return concat("absurdly far from its stored minimum and maximum, ", s.minimum[column], " and ",
                s.maximum[column]);
}

BadInput describe(const DatasetInfo& info, NodeRange nodes, int64_t row, int64_t at, float value) {
  const int64_t width = info.num_variables();
  BadInput bad;
  bad.variable = info.variables[static_cast<size_t>(at % width)];
  bad.row = row;
  bad.date_s = info.dates_s[static_cast<size_t>(row)];
  bad.member = at / width / nodes.size();
  bad.cell = nodes.begin + at / width % nodes.size();
  bad.value = value;
  const auto n = static_cast<size_t>(bad.cell);
  bad.text = concat("the input is bad: '", info.name, "': ", bad.variable, " is ", value, " (",
                    reason(value, static_cast<size_t>(at % width), info.statistics), ") on ",
                    format_date(bad.date_s), " in cell ", bad.cell, " (",
                    degrees(info.latitudes_deg[n], "N", "S"), ", ",
                    degrees(info.longitudes_deg[n], "E", "W"), ")",
                    info.ensemble_size > 1 ? concat(" of member ", bad.member) : std::string());
  bad.hint = concat("repair the dataset, with NaN where there is no value; or drop ", bad.variable,
                    " (data.dataset.drop), or end the period before this date");
  return bad;
}

}  // namespace

std::optional<BadInput> first_bad_input(const Dataset& dataset, NodeRange nodes,
                                        std::span<const int64_t> rows) {
  const DatasetInfo& info = dataset.info();
  const auto width = static_cast<size_t>(info.num_variables());
  const std::vector<float> limits = limits_of(info);
  std::vector<float> values(static_cast<size_t>(info.ensemble_size * nodes.size()) * width);
  std::optional<BadInput> absurd;
  for (const int64_t row : rows) {
    dataset.read(row, nodes, values);
    int64_t at =
        find(values, width, [](float value, size_t) { return is_infinite_or_fill(value); });
    if (at >= 0) return describe(info, nodes, row, at, values[static_cast<size_t>(at)]);
    if (absurd) continue;
    at = find(values, width,
              [&](float value, size_t column) { return std::abs(value) > limits[column]; });
    if (at >= 0) absurd = describe(info, nodes, row, at, values[static_cast<size_t>(at)]);
  }
  return absurd;
}

}  // namespace aifs::data
