// SPDX-License-Identifier: Apache-2.0
// Limits on model outputs, applied in configuration order on normalised values (Anemoi's bounding
// layers). Columns are used in model-output order; the Normalized kinds in configuration order,
// with one threshold per variable in physical units that is normalised first.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/config.h"
#include "model/base/parameters.h"

namespace aifs::model {

enum class BoundingKind {
  kRelu,
  kLeakyRelu,
  kHardtanh,
  kLeakyHardtanh,
  kFraction,
  kLeakyFraction,
  kNormalizedRelu,
  kNormalizedLeakyRelu
};

// How a physical threshold becomes a normalised one.
enum class ThresholdNorm { kMeanStd, kStd };

struct BoundingOptions {
  BoundingKind kind = BoundingKind::kRelu;
  std::vector<std::string> variables = {};
  double min_val = 0.0, max_val = 1.0;       // hardtanh and fraction kinds
  std::string total_var = {};                // fraction kinds: multiplies by this variable
  std::vector<double> thresholds = {};       // normalized kinds: physical units, one per variable
  std::vector<std::string> normalizer = {};  // normalized kinds: mean-std or std, one per variable
  std::vector<std::string> datasets = {};    // that it is for, of several; empty: all

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Describes what is known of the output variables, in model-output order.
struct OutputVariables {
  std::vector<std::string> names;
  std::vector<double> mean, stdev;  // physical units; may be empty if no Normalized kind is used
};

class Bounding {
 public:
  // Registers norm_min_val under `scope` for the Normalized kinds. `path` is the JSON path for
  // ConfigErrors: unknown variables, wrong number of thresholds.
  Bounding(const ParameterScope& scope, const BoundingOptions& options,
           const OutputVariables& outputs, const std::string& path);

  // (..., V_out) -> the same shape, a new tensor.
  at::Tensor forward(const at::Tensor& y) const;
  // True if each of its columns depends on itself alone, and then the same in place; with
  // `slope_wanted` the derivative of its columns, else an undefined tensor.
  bool is_elementwise() const { return total_ < 0; }
  at::Tensor limit_(const at::Tensor& y, bool slope_wanted) const;
  const at::Tensor& columns() const { return columns_; }  // i64
  const std::vector<std::string>& variables() const { return options_.variables; }

 private:
  BoundingOptions options_;
  at::Tensor columns_;     // i64
  int64_t total_ = -1;     // column of total_var
  at::Tensor thresholds_;  // one per column
};

// True if none of them reads a column that another one changes.
bool independent(const std::vector<Bounding>& boundings);

constexpr auto enum_table(BoundingKind) {
  using enum BoundingKind;
  return std::to_array<EnumName<BoundingKind>>({{kRelu, "relu"},
                                                {kLeakyRelu, "leaky_relu"},
                                                {kHardtanh, "hardtanh"},
                                                {kLeakyHardtanh, "leaky_hardtanh"},
                                                {kFraction, "fraction"},
                                                {kLeakyFraction, "leaky_fraction"},
                                                {kNormalizedRelu, "normalized_relu"},
                                                {kNormalizedLeakyRelu, "normalized_leaky_relu"}});
}

}  // namespace aifs::model
