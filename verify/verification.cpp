// SPDX-License-Identifier: Apache-2.0
#include "verify/verification.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "verify/seasons.h"

namespace aifs::verify {

namespace {

// Skill from the pairs of each part; none where there is no pair.
std::vector<Skill> skill_of(const std::vector<std::vector<ErrorPair>>& pairs) {
  std::vector<Skill> skill;
  for (const std::vector<ErrorPair>& part : pairs)
    skill.push_back(part.empty() ? Skill{NAN, NAN, NAN} : bootstrap_skill(part));
  return skill;
}

std::vector<Skill> skill_against_figure(const std::vector<ForecastScores>& forecasts,
                                        size_t num_parts, double FieldScores::*figure) {
  std::vector<std::vector<ErrorPair>> pairs(num_parts);
  for (const ForecastScores& forecast : forecasts)
    for (size_t i = 0; i < num_parts; ++i)
      if (const auto& scores = forecast.scores[i])
        pairs[i].push_back({scores->squared_error, (*scores).*figure});
  return skill_of(pairs);
}

}  // namespace

std::vector<Skill> skill_against_persistence(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts) {
  return skill_against_figure(forecasts, num_parts, &FieldScores::persistence_squared_error);
}

std::vector<Skill> skill_against_climatology(const std::vector<ForecastScores>& forecasts,
                                             size_t num_parts) {
  return skill_against_figure(forecasts, num_parts, &FieldScores::climatology_squared_error);
}

std::vector<Skill> skill_against(const std::vector<ForecastScores>& forecasts,
                                 const std::vector<ForecastScores>& others, size_t num_parts) {
  std::map<int64_t, const ForecastScores*> by_start;
  for (const ForecastScores& other : others)
    by_start[other.start_s] = &other;
  std::vector<std::vector<ErrorPair>> pairs(num_parts);
  int64_t num_common = 0;
  for (const ForecastScores& forecast : forecasts) {
    const auto other = by_start.find(forecast.start_s);
    if (other == by_start.end()) continue;
    ++num_common;
    for (size_t i = 0; i < num_parts; ++i) {
      const auto &own = forecast.scores[i], &theirs = other->second->scores[i];
      if (own && theirs) pairs[i].push_back({own->squared_error, theirs->squared_error});
    }
  }
  if (num_common == 0)
    throw DataError("the two sets of forecasts have no start date in common",
                    "make forecasts of the same dates with both");
  return skill_of(pairs);
}

SeasonScores summarise(const SeasonRequest& request, const ScoredParts& parts,
                       const std::vector<ForecastScores>& forecasts,
                       const std::vector<ForecastScores>& others) {
  // All of them are not copied.
  std::vector<ForecastScores> kept_own, kept_others;
  const auto chosen = [&](const std::vector<ForecastScores>& all,
                          std::vector<ForecastScores>& kept) -> const std::vector<ForecastScores>& {
    if (request.season == "all") return all;
    return kept = in_season(all, parts, request.season);
  };
  const std::vector<ForecastScores>& own = chosen(forecasts, kept_own);
  SeasonScores found{.name = request.season, .scores = mean_scores(own, parts.size())};
  found.against_persistence = skill_against_persistence(own, parts.size());
  if (request.has_climatology)
    found.against_climatology = skill_against_climatology(own, parts.size());
  if (!others.empty())
    found.against_other = skill_against(own, chosen(others, kept_others), parts.size());
  return found;
}

}  // namespace aifs::verify
