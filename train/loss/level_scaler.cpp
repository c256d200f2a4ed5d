// SPDX-License-Identifier: Apache-2.0
#include "train/loss/level_scaler.h"

#include <algorithm>

namespace aifs::train {

namespace {

double level_weight(double level, const LevelScalerOptions& options) {
  const double scaled = options.slope * level;
  switch (options.kind) {
    case LevelScaling::kRelu:
      return std::max(options.y_intercept, scaled);
    case LevelScaling::kLinear:
      return scaled + options.y_intercept;
    case LevelScaling::kPolynomial:
      return scaled * scaled + options.y_intercept;
    case LevelScaling::kNone:
      return 1.0;
  }
  return 1.0;
}

}  // namespace

void LevelScalerOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"weight as a function of the pressure level"});
  b.number("y_intercept", y_intercept, {}, {"smallest weight (relu) or constant term"});
  b.number("slope", slope, {}, {"growth of the weight with pressure", "1/hPa"});
  b.text_list("parameters", parameters, {"parameters whose levels are weighted"});
}

at::Tensor level_weights(const std::vector<std::string>& outputs,
                         const LevelScalerOptions& options) {
  std::vector<double> weights;
  for (const std::string& name : outputs) {
    const data::VariableName variable = data::split_variable_name(name);
    const bool weighted =
        variable.level >= 0 && std::find(options.parameters.begin(), options.parameters.end(),
                                         variable.parameter) != options.parameters.end();
    weights.push_back(weighted ? level_weight(static_cast<double>(variable.level), options) : 1.0);
  }
  return weights_of(weights);
}

void PressureLevelKind::bind_settings(config::Binder& b) {
  b.section("level", level, {"weights of pressure levels"});
}

at::Tensor PressureLevelKind::weights(const ScalerPlace& place) const {
  return level_weights(place.inputs.variables.output_names(), level);
}

}  // namespace aifs::train
