// SPDX-License-Identifier: Apache-2.0
// Options that name a score of validations by which weights are judged: to keep the best ones
// ("checkpoint.keep_best"), and to stop early ("train.early_stop").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/enum_names.h"

namespace aifs::train {

// Which of two values of a score is the better one; auto: the lower one of errors and losses, the
// higher one of skill.
enum class Better { kAuto, kLower, kHigher };

// A score by its name (train/scores/named_scores.h).
struct ScoreChoice {
  std::string score;
  Better better = Better::kAuto;

  // True if `value` is better than `other` by more than `margin`. What is not finite is better than
  // nothing, and anything finite is better than it.
  bool is_better(double value, double other, double margin = 0.0) const;
  // Throws ConfigError, with the nearest names, if the score is none of `known`, or, below
  // `path`.better, if neither direction of it is the better one by itself. `path`: of the section.
  void check(const std::string& path, const std::vector<std::string>& known) const;

  friend bool operator==(const ScoreChoice&, const ScoreChoice&) = default;
};

struct EarlyStopOptions {
  ScoreChoice by;        // no score: training does not stop early
  int64_t patience = 5;  // validations in a row without a gain
  double min_delta = 0.0;

  bool is_on() const { return !by.score.empty(); }
  void bind(config::Binder& b);
};

struct KeepBestOptions {
  int64_t number = 0;
  ScoreChoice by{.score = "loss"};

  bool is_on() const { return number > 0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

constexpr auto enum_table(Better) {
  using enum Better;
  return std::to_array<EnumName<Better>>({{kAuto, "auto"}, {kLower, "lower"}, {kHigher, "higher"}});
}

}  // namespace aifs::train
