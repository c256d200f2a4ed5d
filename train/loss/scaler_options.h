// SPDX-License-Identifier: Apache-2.0
// Options of scalers, the weights that losses multiply onto errors. The section "loss" describes
// one scaler of each kind; "named_scalers" holds further ones.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "train/loss/scalers.h"

namespace aifs::train {

enum class ScalerKind {
  kPressureLevel,
  kGeneralVariable,
  kNodeWeights,
  kTimeSteps,
  kStdevTendency,
  kVarTendency,
  kNanMask,
  kLeadTimeDecay,
  kVariableMask,
  kSpectral,
  kValues
};

struct TendencyScalerOptions {
  std::string timestep;  // empty: data.timestep
  bool skip_first_column = false;
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Settings of all kinds that the section "loss" knows. Each kind reads its own.
struct ScalerSettings {
  LevelScalerOptions level;
  std::map<std::string, double> variable_weights{
      {"default", 1.0}, {"q", 0.6},    {"t", 6.0},    {"u", 0.8},   {"v", 0.5},
      {"w", 0.001},     {"z", 12.0},   {"sp", 10.0},  {"10u", 0.1}, {"10v", 0.1},
      {"2d", 0.5},      {"tp", 0.025}, {"cp", 0.0025}};
  std::vector<std::string> masked_variables;
  bool mask_inverse = false;
  std::string node_attribute = "area_weight";
  std::string node_mask;  // attribute of nodes that share `node_mask_share` of the weight
  double node_mask_share = 0.5;
  std::vector<double> time_weights;
  LeadTimeDecayOptions lead_time;
  TendencyScalerOptions tendency;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// One scaler. Options that its kind does not read are refused.
struct ScalerOptions : ScalerSettings {
  ScalerKind kind = ScalerKind::kPressureLevel;
  WeightNorm norm = WeightNorm::kNone;  // of the values
  bool node_inverse = false;            // node_weights: 1 where the attribute is 0, else 0
  int64_t modes = 0;                    // spectral; 0: as many as the loss has
  int64_t repeats = 1;                  // spectral: number of equal blocks of modes
  // values: row-major, of one dimension for each axis.
  std::vector<std::string> axes;
  std::vector<int64_t> shape;  // empty: one axis
  std::vector<double> values;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  // Returns the axes on which it acts, in ascending order.
  std::vector<Axis> acting_axes() const;
};

constexpr auto enum_table(ScalerKind) {
  using enum ScalerKind;
  return std::to_array<EnumName<ScalerKind>>({{kPressureLevel, "pressure_level"},
                                              {kGeneralVariable, "general_variable"},
                                              {kNodeWeights, "node_weights"},
                                              {kTimeSteps, "time_steps"},
                                              {kStdevTendency, "stdev_tendency"},
                                              {kVarTendency, "var_tendency"},
                                              {kNanMask, "nan_mask_weights"},
                                              {kLeadTimeDecay, "lead_time_decay"},
                                              {kVariableMask, "variable_mask"},
                                              {kSpectral, "spectral"},
                                              {kValues, "values"}});
}

}  // namespace aifs::train
