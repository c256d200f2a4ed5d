// SPDX-License-Identifier: Apache-2.0
// The sections "train", "optimizer", "checkpoint", "log" and "profile" of a configuration
// ("loss" is in loss_options.h).
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "train/loss/loss_options.h"
#include "train/nonfinite.h"
#include "train/optim/adapters.h"
#include "train/optim/optimizer.h"
#include "train/optim/precision.h"
#include "train/optim/schedule.h"
#include "train/optim/weight_average.h"
#include "train/scores/score_choice.h"

namespace aifs::train {

// Divides the gradients of a step: by the batches it has, or by accumulate_batches as the reference
// does, also where an epoch ends with fewer.
enum class Accumulation { kMean, kAnemoi };

enum class GridWeights { kArea, kCosLatitude, kUniform };

// True if loss and gradients are recorded as CUDA graphs where they can be; auto: where memory
// allows it, too.
enum class DeviceGraphs { kAuto, kOn, kOff };

// Says what happens when a validation has no scores because its data cannot be read.
enum class OnFailedValidation { kContinue, kStop };

struct ValidationOptions {
  int64_t every_steps = 0;
  int64_t every_epochs = 1;
  bool at_end = true;
  std::vector<std::string> lead_times;  // empty: one timestep
  int64_t max_dates = 0;                // 0: all
  GridWeights weights = GridWeights::kCosLatitude;
  std::string region;                // attribute of the data nodes; empty: scores of the whole only
  std::vector<std::string> regions;  // names or boxes whose scores are given, too
  int64_t rollout = 0;  // forecast steps of the loss; 0: those of training at that time
  OnFailedValidation on_failure = OnFailedValidation::kContinue;

  // True if a run validates at all.
  bool is_on() const { return every_steps > 0 || every_epochs > 0 || at_end; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct TrainOptions {
  int64_t max_steps = 1000;
  int64_t max_epochs = 0;  // 0: no limit
  int64_t accumulate_batches = 1;
  Accumulation accumulation = Accumulation::kMean;
  double max_minutes = 0.0;  // 0: no limit
  Precision precision = Precision::kFp32;
  OnNonfinite on_nonfinite = OnNonfinite::kStop;
  int64_t max_skipped_steps = 10;
  DeviceGraphs cuda_graph = DeviceGraphs::kAuto;
  RolloutOptions rollout;
  ValidationOptions validation;
  EarlyStopOptions early_stop = {};

  // The longest forecast of a training step of the run.
  int64_t longest_rollout() const { return train::longest_rollout(rollout, max_epochs, max_steps); }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

struct AverageOptions {
  AverageKind kind = AverageKind::kNone;
  double decay = 0.999;

  void bind(config::Binder& b);
};

// Weights to start from, other than random ones.
struct InitOptions {
  std::string from;                   // a run or checkpoint folder; empty: random
  std::vector<std::string> may_skip;  // patterns of tensors that need not fit
  bool other_graph = false;           // than that of `from` is meant
  bool variables_by_name = false;     // which may be others than those of `from`

  void bind(config::Binder& b);
};

struct OptimizerOptions {
  AdamWOptions adamw;
  LrScaling lr_scaling = LrScaling::kNone;
  int64_t reference_samples = 1;
  std::vector<ParameterGroupOptions> groups;
  std::vector<std::string> freeze;
  LoraOptions lora;
  AverageOptions average;
  ScheduleOptions schedule;
  ClipKind clip = ClipKind::kValue;
  double clip_limit = 32.0;

  void bind(config::Binder& b);
};

struct CheckpointOptions {
  int64_t every_steps = 0;
  int64_t every_epochs = 0;
  double every_minutes = 0.0;
  bool at_end = true;
  int64_t keep = 3;
  int64_t keep_every_steps = 0;
  double keep_every_hours = 0.0;
  KeepBestOptions keep_best = {};
  bool background = true;

  void bind(config::Binder& b);
};

// A store of MLflow in files, which many runs share.
struct MlflowOptions {
  std::string dir;  // empty: none
  std::string experiment = "aifs-train";

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Whose memory, use and faults the log has: GPUs of this run's ranks on the main rank's host, all
// of that host, or none.
enum class GpuFigures { kRun, kHost, kNone };

struct LogOptions {
  int64_t every_steps = 10;
  std::string machine = {};  // file that says what its card could do; empty: unknown
  GpuFigures gpus = GpuFigures::kRun;
  bool tensorboard = true;
  bool csv = false;
  MlflowOptions mlflow = {};
  bool progress_bar = true;

  void bind(config::Binder& b);
};

struct ProfileOptions {
  bool parts = false;
  int64_t steps = 0;  // with a timeline
  int64_t first_step = 10;
  bool nvtx = false;

  void bind(config::Binder& b);
};

constexpr auto enum_table(Accumulation) {
  using enum Accumulation;
  return std::to_array<EnumName<Accumulation>>({{kMean, "mean"}, {kAnemoi, "anemoi"}});
}

constexpr auto enum_table(DeviceGraphs) {
  using enum DeviceGraphs;
  return std::to_array<EnumName<DeviceGraphs>>({{kAuto, "auto"}, {kOn, "on"}, {kOff, "off"}});
}

constexpr auto enum_table(GpuFigures) {
  using enum GpuFigures;
  return std::to_array<EnumName<GpuFigures>>({{kRun, "run"}, {kHost, "host"}, {kNone, "none"}});
}

constexpr auto enum_table(OnFailedValidation) {
  using enum OnFailedValidation;
  return std::to_array<EnumName<OnFailedValidation>>({{kContinue, "continue"}, {kStop, "stop"}});
}

constexpr auto enum_table(GridWeights) {
  using enum GridWeights;
  return std::to_array<EnumName<GridWeights>>(
      {{kArea, "area"}, {kCosLatitude, "cos_latitude"}, {kUniform, "uniform"}});
}

}  // namespace aifs::train
