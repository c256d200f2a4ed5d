// SPDX-License-Identifier: Apache-2.0
// Learning rate and rollout length as pure functions of step and epoch.
#pragma once

#include <cstdint>

#include "core/config.h"

namespace aifs::train {

enum class ScheduleKind { kCosine, kConstant };

// How a constant rate falls in the end: linearly, or with 1 - sqrt of the share of the cool-down
// that is over (Haegele et al. 2024), fast at first.
enum class Cooldown { kLinear, kSqrt };

// Linear warm-up from 0, then a cosine whose phase is counted from step 0 (timm's schedule with
// warmup_prefix false): there is a tiny jump where the warm-up ends. Or a constant rate, which may
// fall to lr_min over the last steps.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kCosine;
  double lr = 6.25e-4;
  double lr_min = 3e-7;
  int64_t warmup_steps = 1000;
  int64_t total_steps = 0;  // 0: train.max_steps
  int64_t cooldown_steps = 0;
  Cooldown cooldown = Cooldown::kSqrt;

  // True if the rate depends on where training ends.
  bool has_end() const { return kind == ScheduleKind::kCosine || cooldown_steps > 0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Throws ConfigError if the schedule needs an end and has none (total_steps of 0), or if its
// cool-down begins before the warm-up is over. `path` is that of the schedule.
void check_end(const ScheduleOptions& options, const std::string& path);

// Rate for the next optimiser step when `finished` steps are done: the first step after a warm-up
// start has rate 0.
double learning_rate(const ScheduleOptions& options, int64_t finished);

// Rollout that grows by one at the end of epochs e with (e + 1) % epoch_increment == 0, or after
// every step_increment optimiser steps; not by both.
struct RolloutOptions {
  int64_t start = 1;
  int64_t epoch_increment = 0;
  int64_t maximum = 1;
  bool recompute = false;
  int64_t step_increment = 0;

  bool grows() const { return epoch_increment > 0 || step_increment > 0; }

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Steps of one sample's forecast in epoch `epoch` (counted from 0) when `finished` optimiser steps
// of the run are done; never shrinks as either grows.
int64_t rollout_at(const RolloutOptions& options, int64_t epoch, int64_t finished);

// The longest forecast of a run of so many epochs and optimiser steps, 0: no limit. Where the limit
// does not tell how far a rollout grows, its maximum.
int64_t longest_rollout(const RolloutOptions& options, int64_t max_epochs, int64_t max_steps);

constexpr auto enum_table(ScheduleKind) {
  using enum ScheduleKind;
  return std::to_array<EnumName<ScheduleKind>>({{kCosine, "cosine"}, {kConstant, "constant"}});
}

constexpr auto enum_table(Cooldown) {
  using enum Cooldown;
  return std::to_array<EnumName<Cooldown>>({{kLinear, "linear"}, {kSqrt, "sqrt"}});
}

}  // namespace aifs::train
