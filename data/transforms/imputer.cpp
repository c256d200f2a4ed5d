// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/imputer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace aifs::data {

namespace {

int64_t position(const std::vector<std::string>& variables, const std::string& name,
                 const std::string& path) {
  const auto found = std::find(variables.begin(), variables.end(), name);
  if (found == variables.end()) {
    throw ConfigError(path, concat("the dataset has no variable '", name, "'"),
                      nearest_names(name, variables));
  }
  return found - variables.begin();
}

double statistic(const Statistics& statistics, ImputeMethod method, int64_t column) {
  const auto v = static_cast<size_t>(column);
  switch (method) {
    case ImputeMethod::kMean:
      return statistics.mean[v];
    case ImputeMethod::kMinimum:
      return statistics.minimum[v];
    case ImputeMethod::kMaximum:
      return statistics.maximum[v];
    case ImputeMethod::kStdev:
      return statistics.stdev[v];
    default:
      return 0.0;
  }
}

}  // namespace

void ImputeRule::bind(config::Binder& b) {
  b.text_list("variables", variables, {"variables whose NaN are filled"});
  b.choice("method", method, {"with a statistic of the variable, a constant, or another variable"});
  b.number("value", value, {}, {"the constant (method constant)", "physical unit"});
  b.text("from", from, {"the variable whose value is taken (method copy)"});
}

void ImputeRule::validate(const std::string& path) const {
  if (variables.empty()) throw ConfigError(path + ".variables", "names no variable");
  if ((method == ImputeMethod::kCopy) == from.empty()) {
    throw ConfigError(path + ".from", method == ImputeMethod::kCopy ? "method copy needs a variable"
                                                                    : "is for method copy only");
  }
  if (method != ImputeMethod::kConstant && value != 0.0)
    throw ConfigError(path + ".value", "is for method constant only", "leave it out");
}

Imputer::Imputer(const std::vector<std::string>& variables, const Statistics& statistics,
                 const std::vector<ImputeRule>& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string path = concat("data.imputer.", i);
    for (const std::string& name : rules[i].variables) {
      Entry entry;
      entry.column = position(variables, name, path + ".variables");
      if (imputes(entry.column)) {
        throw ConfigError(path + ".variables", concat("'", name, "' is filled twice"));
      }
      if (rules[i].method == ImputeMethod::kCopy) {
        entry.copy_column = position(variables, rules[i].from, path + ".from");
      } else {
        const double value = rules[i].method == ImputeMethod::kConstant
                                 ? rules[i].value
                                 : statistic(statistics, rules[i].method, entry.column);
        if (!std::isfinite(value)) {
          throw DataError(concat("the ", enum_name(rules[i].method), " of variable '", name,
                                 "' is ", value, ", its NaN cannot be filled with it"));
        }
        entry.value = static_cast<float>(value);
      }
      entries_.push_back(entry);
    }
  }
}

bool Imputer::imputes(int64_t column) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.column == column; });
}

std::optional<float> Imputer::constant(int64_t column) const {
  for (const Entry& entry : entries_) {
    if (entry.column == column && entry.copy_column < 0) return entry.value;
  }
  return std::nullopt;
}

std::string Imputer::describe(int64_t column, const std::vector<std::string>& variables) const {
  for (const Entry& entry : entries_) {
    if (entry.column != column) continue;
    if (entry.copy_column >= 0)
      return concat("copy of ", variables[static_cast<size_t>(entry.copy_column)]);
    char text[32];  // enough digits to tell any two values apart
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(entry.value));
    return text;
  }
  return "";
}

void Imputer::forward(std::span<float> sample, const SampleShape& shape,
                      std::span<uint8_t> first_time_nan) const {
  AIFS_CHECK(static_cast<int64_t>(sample.size()) == shape.size(), "sample of ", sample.size(),
             " values");
  std::fill(first_time_nan.begin(), first_time_nan.end(), uint8_t{0});
  const int64_t width = shape.variables;
  const int64_t slab = shape.ensemble * shape.nodes * width;
  for (int64_t t = 0; t < shape.times; ++t) {
    for (const Entry& entry : entries_) {
      // If member 0 has NaN, every member is filled.
      for (int64_t n = 0; n < shape.nodes; ++n) {
        const float* member0 = sample.data() + t * slab + n * width;
        if (!std::isnan(member0[entry.column])) continue;
        if (t == 0 && !first_time_nan.empty()) {
          first_time_nan[static_cast<size_t>(n * width + entry.column)] = 1;
        }
        for (int64_t e = 0; e < shape.ensemble; ++e) {
          float* row = sample.data() + t * slab + (e * shape.nodes + n) * width;
          row[entry.column] = entry.copy_column >= 0 ? row[entry.copy_column] : entry.value;
        }
      }
    }
  }
}

void restore_nan(std::span<float> fields, const SampleShape& shape,
                 std::span<const int64_t> columns, std::span<const uint8_t> first_time_nan,
                 const VariableTable& variables) {
  const int64_t width = variables.num_variables();
  AIFS_CHECK(static_cast<int64_t>(fields.size()) == shape.size() &&
                 static_cast<int64_t>(columns.size()) == shape.variables &&
                 static_cast<int64_t>(first_time_nan.size()) == shape.nodes * width,
             fields.size(), " values and ", first_time_nan.size(), " marks");
  const int64_t rows = shape.times * shape.ensemble * shape.nodes;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* marks = first_time_nan.data() + (r % shape.nodes) * width;
    float* row = fields.data() + r * shape.variables;
    for (int64_t v = 0; v < shape.variables; ++v) {
      const int64_t column = columns[static_cast<size_t>(v)];
      if (marks[column] != 0 && variables.role(column) != Role::kDiagnostic) {
        row[v] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }
}

int64_t first_nan(std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace aifs::data
