// SPDX-License-Identifier: Apache-2.0
// Parts of the year that scores are of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/scores.h"

namespace aifs::verify {

// "DJF", "MAM", "JJA" or "SON": the season of a date, in seconds since 1970 UTC.
std::string season_of(int64_t date_s);

// The forecasts with the scores of those valid dates only that are in a season; "all": as they are.
std::vector<ForecastScores> in_season(const std::vector<ForecastScores>& forecasts,
                                      const ScoredParts& parts, const std::string& season);

}  // namespace aifs::verify
