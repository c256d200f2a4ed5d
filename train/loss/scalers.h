// SPDX-License-Identifier: Apache-2.0
// Loss weights as small broadcast factors (Anemoi's scalers). A scaler acts on some of the five
// dimensions of a field (B, T, E, N, V_out); it is never expanded to the whole field.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/dataset.h"
#include "data/fields/variables.h"

namespace aifs::train {

// Axes of a field (B, T, E, N, V_out).
enum Axis : int { kBatch = 0, kTime = 1, kEnsemble = 2, kGrid = 3, kVariable = 4 };

struct Scaler {
  std::string name;
  // Five dimensions, size 1 where it does not act; the type of the loss. Undefined: the imputer's
  // mask of the batch at hand.
  at::Tensor factor;
  std::vector<Axis> axes;  // where it acts, even if the field has size 1 there

  bool acts_on(Axis axis) const;
};

enum class LevelScaling { kRelu, kLinear, kPolynomial, kNone };
enum class WeightNorm { kNone, kUnitSum, kUnitMean };

// Weight of a pressure level l: relu max(y_intercept, slope l), linear slope l + y_intercept,
// polynomial (slope l)^2 + y_intercept, none 1. Variables of other groups weigh 1.
struct LevelScalerOptions {
  LevelScaling kind = LevelScaling::kRelu;
  double y_intercept = 0.2;
  double slope = 0.001;  // per hPa
  std::vector<std::string> parameters{"q", "t", "u", "v", "w", "z"};
  void bind(config::Binder& b);
};

// Weight of an output time, from r = lead time / max_lead_time: linear 1 - decay r, exponential
// exp(-decay r); inverse: one minus that. Always divided by the sum over the output times.
enum class LeadTimeDecay { kLinear, kExponential };
struct LeadTimeDecayOptions {
  LeadTimeDecay kind = LeadTimeDecay::kLinear;
  double decay = 1.0;
  double max_lead_time_hours = 24.0;
  bool inverse = false;
  std::vector<double> hours;  // lead times of the output times; empty: multiples of the time step
  void bind(config::Binder& b);
};

// "unit-sum" divides by the sum, "unit-mean" by the mean, in fp32.
at::Tensor normalise_weights(const at::Tensor& weights, WeightNorm norm);

// Values per output variable (V_out), fp32.
at::Tensor level_weights(const std::vector<std::string>& outputs,
                         const LevelScalerOptions& options);
// weights[parameter], else weights["default"], else 1. Throws ConfigError for a name with a level;
// `path` is that of the scaler in the configuration, here and below.
at::Tensor variable_weights(const std::vector<std::string>& outputs,
                            const std::map<std::string, double>& weights,
                            const std::string& path = "loss");
// (stdev / tendency stdev)^power for prognostic outputs, 1 for diagnostic ones. Anemoi's release
// leaves a prognostic variable in dataset column 0 at weight 1; `skip_first_column` does so too.
at::Tensor tendency_weights(const data::VariableTable& variables,
                            const data::Statistics& statistics, const data::Statistics& tendencies,
                            int power, bool skip_first_column);

// 0 for the named outputs and 1 for the others, or the opposite. A parameter ("q") stands for all
// its levels. Throws ConfigError for a name that is not predicted.
at::Tensor variable_mask(const std::vector<std::string>& outputs,
                         const std::vector<std::string>& masked, bool invert,
                         const std::string& path = "loss");

// (T): weights over their sum; uniform if empty.
at::Tensor time_weights(const std::vector<double>& weights, int64_t times,
                        const std::string& path = "loss");
// (T): one per lead time, with sum 1; computed in fp32.
at::Tensor lead_time_weights(const std::vector<double>& lead_times_hours,
                             const LeadTimeDecayOptions& options);

// (N): nodes in the mask all get the weight that gives them together the share `fraction` of the
// total (stretched grids); the others keep theirs. 0 < fraction < 1.
at::Tensor reweighted_nodes(const at::Tensor& weights, const at::Tensor& mask, double fraction);
// (modes * repeats): 1 / modes each, for coefficients of a spectral loss.
at::Tensor spectral_weights(int64_t modes, int64_t repeats);

// Values with one dimension per axis (axes ascending), as a factor of a field.
Scaler over_axes(std::string name, const at::Tensor& values, std::vector<Axis> axes);
Scaler over_axis(std::string name, const at::Tensor& values, Axis axis);

constexpr auto enum_table(LevelScaling) {
  using enum LevelScaling;
  return std::to_array<EnumName<LevelScaling>>(
      {{kRelu, "relu"}, {kLinear, "linear"}, {kPolynomial, "polynomial"}, {kNone, "none"}});
}

constexpr auto enum_table(LeadTimeDecay) {
  using enum LeadTimeDecay;
  return std::to_array<EnumName<LeadTimeDecay>>(
      {{kLinear, "linear"}, {kExponential, "exponential"}});
}

constexpr auto enum_table(WeightNorm) {
  using enum WeightNorm;
  return std::to_array<EnumName<WeightNorm>>(
      {{kNone, "none"}, {kUnitSum, "unit-sum"}, {kUnitMean, "unit-mean"}});
}

}  // namespace aifs::train
