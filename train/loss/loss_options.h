// SPDX-License-Identifier: Apache-2.0
// The section "loss" of a configuration: one loss, or a weighted sum of several, with the scalers
// they share. Which options a kind reads is said at each; options it does not read have no effect,
// but a list, a mask or a named scaler that no loss in use reads is refused.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "data/fields/variables.h"
#include "train/loss/ensemble_loss.h"
#include "train/loss/multi_scale_loss.h"
#include "train/loss/scaler_options.h"
#include "train/loss/spectral_loss.h"

namespace aifs::train {

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

// Neighbours on the data grid for graph scores: nearest nodes, or those at the edges of the graph.
struct LossGraphOptions {
  int64_t neighbours = 4;  // 0: each node by itself
  double sigma = 0.0;      // radians; 0: all neighbours weigh the same
  bool of_graph = false;
  std::string edge_weight;    // of_graph: attribute of edges; empty: 1 each
  std::string source_weight;  // of_graph: attribute of the nodes where edges start; empty: 1 each
  bool row_normalise = true;
  bool is_empty() const { return !of_graph && neighbours == 0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
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
  std::vector<double> weights;             // empty: no scales
  std::vector<std::string> files;          // from coarse to fine; an empty name: fields as they are
  std::vector<SmootherOptions> smoothers;  // from coarse to fine
  bool of_aggregates = false;  // scales of aggregates over time, instead of aggregates of scales
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
  std::vector<TimeAggregate> time_aggregates(const std::string& path) const;
};

struct LossOptions : LossTermOptions, ScalerSettings {
  LossOptions() { scalers = {"pressure_level", "general_variable", "node_weights", "time_steps"}; }

  std::vector<LossTermOptions> terms;  // empty: the loss above
  WeightNorm node_norm = WeightNorm::kUnitSum;
  std::vector<std::pair<std::string, ScalerOptions>> named_scalers;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;

  // The terms with what they take over from the section (scalers that they do not name), and their
  // JSON paths.
  std::vector<std::pair<std::string, LossTermOptions>> effective_terms() const;

  // The scaler of a name: one of `named_scalers`, else that of a kind with the settings of the
  // section; and its JSON path. `path` is where the name stands. Throws ConfigError.
  ScalerOptions scaler(const std::string& name, const std::string& path) const;
  std::string scaler_path(const std::string& name) const;

  // What must hold before any data is read, given how many members a forecast has and how many
  // times a step predicts. Throws ConfigError.
  void check(int64_t members, int64_t times_out) const;
  // The same for names of variables; `targets`: what outputs can be compared with. Throws
  // ConfigError.
  void check_names(const data::VariableTable& table, const std::vector<std::string>& targets) const;

 private:
  void check_scalers(const LossTermOptions& term, const std::string& path) const;
};

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
