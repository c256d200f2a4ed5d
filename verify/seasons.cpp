// SPDX-License-Identifier: Apache-2.0
#include "verify/seasons.h"

#include "core/time.h"

namespace aifs::verify {

std::string season_of(int64_t date_s) {
  constexpr const char* kSeasons[] = {"DJF", "MAM", "JJA", "SON"};
  return kSeasons[to_calendar(date_s).month % 12 / 3];
}

std::vector<ForecastScores> in_season(const std::vector<ForecastScores>& forecasts,
                                      const ScoredParts& parts, const std::string& season) {
  std::vector<ForecastScores> chosen = forecasts;
  if (season == "all") return chosen;
  for (ForecastScores& forecast : chosen) {
    for (size_t t = 0; t < parts.lead_times_s.size(); ++t) {
      if (season_of(forecast.start_s + parts.lead_times_s[t]) == season) continue;
      for (size_t v = 0; v < parts.variables.size(); ++v)
        for (size_t r = 0; r < parts.regions.size(); ++r)
          forecast.scores[parts.place(v, t, r)].reset();
    }
  }
  return chosen;
}

}  // namespace aifs::verify
