// SPDX-License-Identifier: Apache-2.0
// The section "loss" of a configuration: one loss, or a weighted sum of several, with the scalers
// they share. Each kind has options of its own (loss_kind.h); those of another kind are refused,
// and so is a list or mask that none of the scalers in use reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/variables.h"
#include "train/loss/loss_kind.h"
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
  kSpectral
};

struct TendencyScalerOptions {
  std::string timestep;  // empty: data.timestep
  bool skip_first_column = false;
  void bind(config::Binder& b);
};

// Smoothers made from neighbours, to which the fields as they are come as the last scale, or read
// from files. One weight for each scale.
struct ScalesOptions {
  std::vector<double> weights;     // empty: no scales
  std::vector<std::string> files;  // from coarse to fine; an empty name: the fields as they are
  int64_t num_scales = 0;
  int64_t base_neighbours = 4;
  double base_sigma = 0.1;
  double scale_factor = 2.0;
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct LossTermOptions {
  config::Tagged<LossKind> kind;  // mse
  double weight = 1.0;
  bool ignore_nans = false;
  std::vector<std::string> variables;         // empty: all outputs
  std::vector<std::string> target_variables;  // empty: the same
  std::vector<std::string> scalers;
  std::vector<std::string> time_aggregation;
  ScalesOptions scales;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  std::vector<ScalerKind> scaler_kinds(const std::string& path) const;
  std::vector<TimeAggregate> time_aggregates(const std::string& path) const;
};

struct LossOptions : LossTermOptions {
  LossOptions() { scalers = {"pressure_level", "general_variable", "node_weights", "time_steps"}; }

  std::vector<LossTermOptions> terms;  // empty: the loss above
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
  WeightNorm node_norm = WeightNorm::kUnitSum;
  std::vector<double> time_weights;
  LeadTimeDecayOptions lead_time;
  TendencyScalerOptions tendency;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;

  // The terms with what they take over from the section (scalers that they do not name), and their
  // JSON paths.
  std::vector<std::pair<std::string, LossTermOptions>> effective_terms() const;

  // What must hold before any data is read, given how many members a forecast has and how many
  // times a step predicts. Throws ConfigError.
  void check(int64_t members, int64_t times_out) const;
  // The same for names of variables. Throws ConfigError.
  void check_names(const data::VariableTable& table) const;
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
                                              {kSpectral, "spectral"}});
}

}  // namespace aifs::train
