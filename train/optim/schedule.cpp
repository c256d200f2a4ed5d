// SPDX-License-Identifier: Apache-2.0
#include "train/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace aifs::train {

void ScheduleOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"course of the learning rate after the warm-up"});
  b.number("lr", lr, {.min = 0.0, .max = 100.0}, {"largest learning rate"});
  b.number("lr_min", lr_min, {.min = 0.0, .max = 100.0},
           {"learning rate at the end of the cosine or of the cool-down"});
  b.integer("warmup_steps", warmup_steps, {.min = 0},
            {"linear growth from 0 over so many", "steps"});
  b.integer("total_steps", total_steps, {.min = 0},
            {"end of the cosine or of the cool-down; 0 takes train.max_steps", "steps"});
  b.integer("cooldown_steps", cooldown_steps, {.min = 0},
            {"constant: the rate falls to lr_min over the last so many of total_steps; 0: it does "
             "not",
             "steps"});
  b.choice("cooldown", cooldown,
           {"how it falls: linear, or sqrt: with 1 - sqrt of the share that is over"});
}

void ScheduleOptions::validate(const std::string& path) const {
  if (cooldown_steps > 0 && kind == ScheduleKind::kCosine) {
    throw ConfigError(path + ".cooldown_steps", "is for a constant rate; a cosine falls by itself",
                      "use \"kind\": \"constant\", or set it to 0");
  }
  if (cooldown_steps > 0 && lr_min > lr)
    throw ConfigError(path + ".lr_min", concat("is ", lr_min, ", above lr, ", lr),
                      "the rate falls to it over cooldown_steps");
}

void check_end(const ScheduleOptions& options, const std::string& path) {
  if (!options.has_end()) return;
  if (options.total_steps == 0) {
    const bool cosine = options.kind == ScheduleKind::kCosine;
    throw ConfigError(
        path + ".total_steps",
        concat(cosine ? "a cosine" : "a cool-down",
               " needs an end, and train.max_steps gives none"),
        cosine ? "set it, or use \"kind\": \"constant\"" : "set it, or cooldown_steps to 0");
  }
  if (options.cooldown_steps > 0 &&
      options.total_steps - options.cooldown_steps < options.warmup_steps) {
    throw ConfigError(path + ".cooldown_steps",
                      concat("is ", options.cooldown_steps, " of ", options.total_steps,
                             " steps: the rate would fall before the warm-up of ",
                             options.warmup_steps, " steps is over"),
                      "make training longer, or warm-up or cool-down shorter");
  }
}

double learning_rate(const ScheduleOptions& options, int64_t finished) {
  if (finished < options.warmup_steps) {
    return static_cast<double>(finished) * (options.lr / static_cast<double>(options.warmup_steps));
  }
  if (options.kind == ScheduleKind::kConstant && options.cooldown_steps == 0) return options.lr;
  if (finished >= options.total_steps) return options.lr_min;
  if (options.kind == ScheduleKind::kConstant) {
    const int64_t over = finished - (options.total_steps - options.cooldown_steps);
    if (over <= 0) return options.lr;
    const double share = static_cast<double>(over) / static_cast<double>(options.cooldown_steps);
    const double fallen = options.cooldown == Cooldown::kSqrt ? std::sqrt(share) : share;
    return options.lr_min + (options.lr - options.lr_min) * (1.0 - fallen);
  }
  const double phase =
      std::numbers::pi * static_cast<double>(finished) / static_cast<double>(options.total_steps);
  return options.lr_min + 0.5 * (options.lr - options.lr_min) * (1.0 + std::cos(phase));
}

void RolloutOptions::bind(config::Binder& b) {
  b.integer("start", start, {.min = 1, .max = 1024}, {"forecast steps per sample at first"});
  b.integer("epoch_increment", epoch_increment, {.min = 0},
            {"one more step after every so many epochs; 0 never", "epochs"});
  b.integer(
      "step_increment", step_increment, {.min = 0},
      {"one more step after every so many optimiser steps, instead of epochs; 0 never", "steps"});
  b.integer("maximum", maximum, {.min = 1, .max = 1024}, {"most forecast steps per sample"});
  b.boolean("recompute", recompute,
            {"keep the fields between steps only, and run each step again in the backward pass: "
             "memory hardly grows with the number of steps"});
}

void RolloutOptions::validate(const std::string& path) const {
  if (start > maximum) throw ConfigError(path + ".start", "is above maximum");
  if (epoch_increment > 0 && step_increment > 0) {
    throw ConfigError(path + ".step_increment", "is given beside epoch_increment",
                      "let the rollout grow by epochs or by steps, and set the other to 0");
  }
}

int64_t rollout_at(const RolloutOptions& options, int64_t epoch, int64_t finished) {
  int64_t grown = 0;
  if (options.epoch_increment > 0) grown = epoch / options.epoch_increment;
  if (options.step_increment > 0) grown = finished / options.step_increment;
  return std::min(options.start + grown, std::max(options.start, options.maximum));
}

int64_t longest_rollout(const RolloutOptions& options, int64_t max_epochs, int64_t max_steps) {
  if (!options.grows()) return options.start;
  const int64_t limit = options.epoch_increment > 0 ? max_epochs : max_steps;
  return limit > 0 ? rollout_at(options, limit - 1, limit - 1) : options.maximum;
}

}  // namespace aifs::train
