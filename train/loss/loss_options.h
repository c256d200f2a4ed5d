// SPDX-License-Identifier: Apache-2.0
// The section "loss" of a configuration: one loss, or a weighted sum of several, with the scalers
// they share. Which options a kind reads is said at each; options it does not read have no effect,
// but a list or mask that none of the scalers in use reads is refused.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/variables.h"
#include "train/loss/ensemble_loss.h"
#include "train/loss/scalers.h"
#include "train/loss/spectral_loss.h"

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

enum class LossChoice {
  kMse,
  kRmse,
  kMae,
  kHuber,
  kLogCosh,
  kCrps,
  kEnergyScore,
  kGraphEnergyScore,
  kGraphEdgeEnergyScore,
  kGraphEdgeCrps,
  kGraphVariogramScore,
  kSpectralAmse,
  kPowerSpectrum,
  kLogSpectralDistance,
  kFourierCorrelation,
  kSpectralCrps
};
bool is_ensemble_score(LossChoice kind);
bool is_graph_score(LossChoice kind);
bool is_spectral(LossChoice kind);

struct TendencyScalerOptions {
  std::string timestep;  // empty: data.timestep
  bool skip_first_column = false;
  void bind(config::Binder& b);
};

// Neighbours on the data grid for graph scores.
struct LossGraphOptions {
  int64_t neighbours = 4;
  double sigma = 0.0;  // radians; 0: all neighbours weigh the same
  bool row_normalise = true;
  void bind(config::Binder& b);
};

struct ProjectionOptions {
  std::string grid;  // empty: none
  int64_t neighbours = 3;
  double sigma = 0.1;
  void bind(config::Binder& b);
};

struct TransformOptions {
  TransformKind kind = TransformKind::kOctahedralSht;
  std::string grid;         // sphere; empty: that of the data
  int64_t truncation = -1;  // sphere; -1: half the rings, less one
  int64_t x_dim = 0, y_dim = 0;
  bool filter = false;
  std::vector<int64_t> subgrid;
  ProjectionOptions projection;
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
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
  double weight = 1.0;
  LossChoice kind = LossChoice::kMse;
  double huber_delta = 1.0;
  bool ignore_nans = false;
  double alpha = 0.95;
  bool fair = true;
  NormOver norm_over = NormOver::kSpatial;
  double variogram_power = 1.0;
  bool coefficient_magnitude = false;
  std::vector<std::string> variables;         // empty: all outputs
  std::vector<std::string> target_variables;  // empty: the same
  std::vector<std::string> scalers;
  std::vector<std::string> time_aggregation;
  ScalesOptions scales;
  LossGraphOptions graph;
  TransformOptions transform;

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

constexpr auto enum_table(LossChoice) {
  using enum LossChoice;
  return std::to_array<EnumName<LossChoice>>({{kMse, "mse"},
                                              {kRmse, "rmse"},
                                              {kMae, "mae"},
                                              {kHuber, "huber"},
                                              {kLogCosh, "logcosh"},
                                              {kCrps, "crps"},
                                              {kEnergyScore, "energy_score"},
                                              {kGraphEnergyScore, "graph_energy_score"},
                                              {kGraphEdgeEnergyScore, "graph_edge_energy_score"},
                                              {kGraphEdgeCrps, "graph_edge_crps"},
                                              {kGraphVariogramScore, "graph_variogram_score"},
                                              {kSpectralAmse, "spectral_amse"},
                                              {kPowerSpectrum, "power_spectrum"},
                                              {kLogSpectralDistance, "log_spectral_distance"},
                                              {kFourierCorrelation, "fourier_correlation"},
                                              {kSpectralCrps, "spectral_crps"}});
}

}  // namespace aifs::train
