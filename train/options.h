// SPDX-License-Identifier: Apache-2.0
// The sections "loss", "train", "optimizer", "checkpoint", "log" and "profile" of a configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/scalers.h"
#include "train/schedule.h"

namespace aifs::train {

enum class ScalerKind {
  kPressureLevel,
  kGeneralVariable,
  kNodeWeights,
  kTimeSteps,
  kStdevTendency,
  kVarTendency,
  kNanMask
};

struct TendencyScalerOptions {
  std::string timestep;  // empty: data.timestep
  bool skip_first_column = false;
  void bind(config::Binder& b);
};

struct LossOptions {
  LossKind kind = LossKind::kMse;
  double huber_delta = 1.0;
  bool ignore_nans = false;
  std::vector<std::string> scalers{"pressure_level", "general_variable", "node_weights",
                                   "time_steps"};
  LevelScalerOptions level;
  std::map<std::string, double> variable_weights{
      {"default", 1.0}, {"q", 0.6},    {"t", 6.0},    {"u", 0.8},   {"v", 0.5},
      {"w", 0.001},     {"z", 12.0},   {"sp", 10.0},  {"10u", 0.1}, {"10v", 0.1},
      {"2d", 0.5},      {"tp", 0.025}, {"cp", 0.0025}};
  WeightNorm node_norm = WeightNorm::kUnitSum;
  std::vector<double> time_weights;
  TendencyScalerOptions tendency;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  std::vector<ScalerKind> scaler_kinds() const;
};

enum class Precision { kFp32, kFp64, kTf32, kBf16Mixed };
enum class GridWeights { kArea, kCosLatitude, kUniform };

struct ValidationOptions {
  int64_t every_steps = 0;
  int64_t every_epochs = 1;
  bool at_end = true;
  std::vector<std::string> lead_times;  // empty: one timestep
  int64_t max_dates = 0;                // 0: all
  GridWeights weights = GridWeights::kCosLatitude;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct TrainOptions {
  int64_t max_steps = 1000;
  int64_t max_epochs = 0;  // 0: no limit
  int64_t accumulate_batches = 1;
  double max_minutes = 0.0;  // 0: no limit
  Precision precision = Precision::kFp32;
  RolloutOptions rollout;
  ValidationOptions validation;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct OptimizerOptions {
  AdamWOptions adamw;
  ScheduleOptions schedule;
  ClipKind clip = ClipKind::kValue;
  double clip_limit = 32.0;

  void bind(config::Binder& b);
};

struct CheckpointOptions {
  int64_t every_steps = 0;
  int64_t every_epochs = 0;
  bool at_end = true;
  int64_t keep = 3;

  void bind(config::Binder& b);
};

struct LogOptions {
  int64_t every_steps = 10;
  bool tensorboard = true;
  bool progress_bar = true;

  void bind(config::Binder& b);
};

struct ProfileOptions {
  bool parts = false;

  void bind(config::Binder& b);
};

}  // namespace aifs::train

template <>
struct aifs::EnumNames<aifs::train::ScalerKind> {
  using K = aifs::train::ScalerKind;
  static constexpr std::array<std::pair<K, const char*>, 7> table{
      {{K::kPressureLevel, "pressure_level"},
       {K::kGeneralVariable, "general_variable"},
       {K::kNodeWeights, "node_weights"},
       {K::kTimeSteps, "time_steps"},
       {K::kStdevTendency, "stdev_tendency"},
       {K::kVarTendency, "var_tendency"},
       {K::kNanMask, "nan_mask_weights"}}};
};

template <>
struct aifs::EnumNames<aifs::train::Precision> {
  using K = aifs::train::Precision;
  static constexpr std::array<std::pair<K, const char*>, 4> table{
      {{K::kFp32, "fp32"}, {K::kFp64, "fp64"}, {K::kTf32, "tf32"}, {K::kBf16Mixed, "bf16-mixed"}}};
};

template <>
struct aifs::EnumNames<aifs::train::GridWeights> {
  using K = aifs::train::GridWeights;
  static constexpr std::array<std::pair<K, const char*>, 3> table{
      {{K::kArea, "area"}, {K::kCosLatitude, "cos_latitude"}, {K::kUniform, "uniform"}}};
};
