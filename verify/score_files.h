// SPDX-License-Identifier: Apache-2.0
// Scores for programs (JSON Lines, CSV) and for people (a table).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "verify/scores.h"
#include "verify/skill.h"

namespace aifs::verify {

// Everything that a verification has found; lists are as ScoredParts::place() says.
struct Verification {
  ScoredParts parts;
  int64_t num_members = 1;
  std::vector<MeanScores> scores;
  std::vector<Skill> against_persistence;  // where there are scores
  std::vector<Skill> against_other;        // of other forecasts; or empty
};

// The skill of `forecasts` against persistence.
std::vector<Skill> skill_against_persistence(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts);
// Against others, over the dates that both start from. Throws DataError if there is none.
std::vector<Skill> skill_against(const std::vector<ForecastScores>& forecasts,
                                 const std::vector<ForecastScores>& others, size_t num_parts);

// One line or row for each variable, lead time and region that has scores: "variable",
// "lead_time_h", "region", "forecasts", "rmse", "bias", "mae", "persistence_rmse", "skill",
// "skill_low", "skill_high", "activity", "truth_activity", and of ensembles "spread", "crps"; with
// other forecasts "skill_against", "skill_against_low", "skill_against_high".
std::string to_json_lines(const Verification& verification);
std::string to_csv(const Verification& verification);

// How many forecasts there are, then variables by lead times: RMSE and skill against persistence in
// one region; with other forecasts the skill against them, with a star where it is significant.
std::string to_table(const Verification& verification, size_t region);

}  // namespace aifs::verify
