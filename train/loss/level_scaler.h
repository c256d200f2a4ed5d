// SPDX-License-Identifier: Apache-2.0
// Weights by pressure level: the scaler "pressure_level".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

enum class LevelScaling { kRelu, kLinear, kPolynomial, kNone };

// Weight of a pressure level l: relu max(y_intercept, slope l), linear slope l + y_intercept,
// polynomial (slope l)^2 + y_intercept, none 1. Variables of other groups weigh 1.
struct LevelScalerOptions {
  LevelScaling kind = LevelScaling::kRelu;
  double y_intercept = 0.2;
  double slope = 0.001;  // per hPa
  std::vector<std::string> parameters{"q", "t", "u", "v", "w", "z"};
  void bind(config::Binder& b);
};

// Values per output variable (V_out), fp32.
at::Tensor level_weights(const std::vector<std::string>& outputs,
                         const LevelScalerOptions& options);

struct PressureLevelKind : WeightsKind {
  LevelScalerOptions level;

  void bind_settings(config::Binder& b) override;
  at::Tensor weights(const ScalerPlace& place) const override;
};

constexpr auto enum_table(LevelScaling) {
  using enum LevelScaling;
  return std::to_array<EnumName<LevelScaling>>(
      {{kRelu, "relu"}, {kLinear, "linear"}, {kPolynomial, "polynomial"}, {kNone, "none"}});
}

}  // namespace aifs::train
