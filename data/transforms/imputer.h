// SPDX-License-Identifier: Apache-2.0
// Fills NaN in fields before they are normalised, and remembers where they were (Anemoi's
// InputImputer, ConstantImputer and CopyImputer). Positions that were NaN at the first input time
// weigh nothing in the loss and become NaN again in physical output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/dataset.h"
#include "data/fields/variables.h"

namespace aifs::data {

enum class ImputeMethod { kMean, kMinimum, kMaximum, kStdev, kConstant, kCopy };

struct ImputeRule {
  std::vector<std::string> variables;
  ImputeMethod method = ImputeMethod::kMean;
  double value = 0.0;     // for constant
  std::string from = {};  // for copy: the variable whose value is taken

  void bind(config::Binder& b);
  // Throws ConfigError for what the method lacks and for what it does not use.
  void validate(const std::string& path) const;
};

// One sample in memory: (T, E, N, V) fp32, C order.
struct SampleShape {
  int64_t times = 0, ensemble = 1, nodes = 0, variables = 0;
  int64_t size() const { return times * ensemble * nodes * variables; }
};

class Imputer {
 public:
  Imputer() = default;
  // Throws ConfigError (path "data.imputer.<i>") for unknown or repeated names, DataError if a
  // statistic that is needed is not finite.
  Imputer(const std::vector<std::string>& variables, const Statistics& statistics,
          const std::vector<ImputeRule>& rules);

  bool empty() const { return entries_.empty(); }
  // True for data columns that are filled.
  bool imputes(int64_t column) const;
  // The constant that NaN of a data column are filled with; nothing if they are not filled, or with
  // another variable.
  std::optional<float> constant(int64_t column) const;
  // Returns what NaN of a data column are filled with: "280.5" or "copy of sst"; "" if they are
  // not.
  std::string describe(int64_t column, const std::vector<std::string>& variables) const;

  // Fills `sample` in place. `first_time_nan` (N, V) becomes 1 where a filled variable was NaN at
  // the first time in member 0, else 0; it may be empty if not wanted.
  void forward(std::span<float> sample, const SampleShape& shape,
               std::span<uint8_t> first_time_nan) const;

 private:
  struct Entry {
    int64_t column = 0;
    int64_t copy_column = -1;  // >= 0: take this column's value instead of `value`
    float value = 0.0f;
  };
  std::vector<Entry> entries_;
};

// The inverse of Imputer::forward on physical fields (T, E, N, columns.size()) that hold the data
// columns `columns`: NaN at every time where `first_time_nan` (N, V) is 1. Only what was read as
// input becomes NaN again; diagnostic variables keep their values, as in Anemoi.
// `shape.variables` is the number of columns.
void restore_nan(std::span<float> fields, const SampleShape& shape,
                 std::span<const int64_t> columns, std::span<const uint8_t> first_time_nan,
                 const VariableTable& variables);

// Position of the first NaN, or -1.
int64_t first_nan(std::span<const float> values);

constexpr auto enum_table(ImputeMethod) {
  using enum ImputeMethod;
  return std::to_array<EnumName<ImputeMethod>>({{kMean, "mean"},
                                                {kMinimum, "minimum"},
                                                {kMaximum, "maximum"},
                                                {kStdev, "stdev"},
                                                {kConstant, "constant"},
                                                {kCopy, "copy"}});
}

}  // namespace aifs::data
