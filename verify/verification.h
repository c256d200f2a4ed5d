// SPDX-License-Identifier: Apache-2.0
// What a verification has found: means over forecasts, and skill against simple or other forecasts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/scores.h"
#include "verify/skill.h"

namespace aifs::verify {

// Means over the forecasts valid in a season; lists are as ScoredParts::place() says.
struct SeasonScores {
  std::string name = "all";
  std::vector<MeanScores> scores;
  std::vector<Skill> against_persistence = {};  // where there are scores
  std::vector<Skill> against_climatology = {};  // or empty
  std::vector<Skill> against_other = {};        // of other forecasts; or empty
};

struct Verification {
  ScoredParts parts;
  int64_t num_members = 1;
  std::vector<SeasonScores> seasons = {};  // one at least
};

// The skill of `forecasts` against persistence, and against the climatology that they were scored
// with.
std::vector<Skill> skill_against_persistence(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts);
std::vector<Skill> skill_against_climatology(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts);
// Against others, over the dates that both start from. Throws DataError if there is none.
std::vector<Skill> skill_against(const std::vector<ForecastScores>& forecasts,
                                 const std::vector<ForecastScores>& others, size_t num_parts);

// All of a season. `others` may be empty: none are compared with.
struct SeasonRequest {
  std::string season = "all";
  bool has_climatology = false;
};
SeasonScores summarise(const SeasonRequest& request, const ScoredParts& parts,
                       const std::vector<ForecastScores>& forecasts,
                       const std::vector<ForecastScores>& others);

}  // namespace aifs::verify
