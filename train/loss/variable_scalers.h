// SPDX-License-Identifier: Apache-2.0
// Weights of single variables: the scalers "general_variable" and "variable_mask".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

// weights[parameter], else weights["default"], else 1; one per output variable (V_out), fp32.
// Throws ConfigError for a name with a level; `path` is that of the scaler, here and below.
at::Tensor variable_weights(const std::vector<std::string>& outputs,
                            const std::map<std::string, double>& weights,
                            const std::string& path = "loss");

// 0 for the named outputs and 1 for the others, or the opposite. A parameter ("q") stands for all
// its levels. Throws ConfigError for a name that is not predicted.
at::Tensor variable_mask(const std::vector<std::string>& outputs,
                         const std::vector<std::string>& masked, bool invert,
                         const std::string& path = "loss");

struct GeneralVariableKind : WeightsKind {
  std::map<std::string, double> variable_weights{
      {"default", 1.0}, {"q", 0.6},    {"t", 6.0},    {"u", 0.8},   {"v", 0.5},
      {"w", 0.001},     {"z", 12.0},   {"sp", 10.0},  {"10u", 0.1}, {"10v", 0.1},
      {"2d", 0.5},      {"tp", 0.025}, {"cp", 0.0025}};

  void bind_settings(config::Binder& b) override;
  void check_names(const std::vector<std::string>& outputs, const std::string& path) const override;
  at::Tensor weights(const ScalerPlace& place) const override;
};

struct VariableMaskKind : WeightsKind {
  std::vector<std::string> masked_variables;
  bool mask_inverse = false;

  void bind_settings(config::Binder& b) override;
  void check_names(const std::vector<std::string>& outputs, const std::string& path) const override;
  const char* key_to_use() const override;
  at::Tensor weights(const ScalerPlace& place) const override;
};

}  // namespace aifs::train
