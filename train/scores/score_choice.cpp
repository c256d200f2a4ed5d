// SPDX-License-Identifier: Apache-2.0
#include "train/scores/score_choice.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/check.h"

namespace aifs::train {

namespace {

constexpr const char* kDirection = {
    "which value is the better one: auto is the lower one of errors and losses, the higher one of "
    "skill; bias and activity have none by themselves"};

// The name of a score without that of its dataset, which is before a slash.
std::string_view plain_name(std::string_view score) {
  return score.substr(score.rfind('/') + 1);  // all of it where there is none
}

// Scores that are neither good nor bad where they are low.
bool lacks_direction(const std::string& score) {
  const std::string_view name = plain_name(score);
  return name.starts_with("bias") || name.starts_with("activity") ||
         name.starts_with("truth_activity");
}

bool higher_is_better(const ScoreChoice& choice) {
  if (choice.better != Better::kAuto) return choice.better == Better::kHigher;
  return plain_name(choice.score).starts_with("skill");
}

}  // namespace

bool ScoreChoice::is_better(double value, double other, double margin) const {
  if (!std::isfinite(value)) return false;
  if (!std::isfinite(other)) return true;
  return higher_is_better(*this) ? value > other + margin : value < other - margin;
}

void ScoreChoice::check(const std::string& path, const std::vector<std::string>& known) const {
  if (std::find(known.begin(), known.end(), score) == known.end()) {
    throw ConfigError(path + ".score",
                      concat("there is no score '", score, "' among the ", known.size(),
                             " that validations of this run give"),
                      nearest_names(score, known));
  }
  if (better == Better::kAuto && lacks_direction(score)) {
    throw ConfigError(path + ".better",
                      concat("of '", score,
                             "' neither the lower nor the higher value is better by "
                             "itself"),
                      "say \"lower\" or \"higher\", or take an error such as rmse or mae");
  }
}

void EarlyStopOptions::bind(config::Binder& b) {
  b.text("score", by.score,
         {"score of the validations by which training stops early, such as \"loss\" or "
          "\"mean_ratio_24h\"; empty: it does not"});
  b.choice("better", by.better, {kDirection});
  b.integer("patience", patience, {.min = 1},
            {"stop after so many validations in a row without a gain", "validations"});
  b.number("min_delta", min_delta, {.min = 0.0},
           {"a gain is a value that is better than the best one by more than this"});
}

void KeepBestOptions::bind(config::Binder& b) {
  b.integer("number", number, {.min = 0},
            {"checkpoints with the best scores to keep besides the newest; 0: none. They are "
             "written after the validation where no other is due"});
  b.text("score", by.score,
         {"score of the validations that is meant, such as \"loss\" or \"mean_ratio_24h\""});
  b.choice("better", by.better, {kDirection});
}

void KeepBestOptions::validate(const std::string& path) const {
  if (is_on() && by.score.empty())
    throw ConfigError(path + ".score", "is empty", "name a score, such as \"loss\"");
}

}  // namespace aifs::train
