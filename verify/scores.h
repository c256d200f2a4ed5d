// SPDX-License-Identifier: Apache-2.0
// Scores of all fields of a forecast against the dataset, and their means over forecasts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/climatology.h"
#include "verify/field_scores.h"
#include "verify/forecast_reader.h"
#include "verify/regions.h"
#include "verify/truth.h"

namespace aifs::verify {

// What is scored: the same for all forecasts of a verification.
struct ScoredParts {
  std::vector<std::string> variables;
  std::vector<int64_t> lead_times_s;
  std::vector<Region> regions;
  std::vector<std::vector<double>> thresholds = {};  // of each variable; or empty: none

  size_t size() const { return variables.size() * lead_times_s.size() * regions.size(); }
  size_t place(size_t variable, size_t lead_time, size_t region) const {
    return (variable * lead_times_s.size() + lead_time) * regions.size() + region;
  }
};

// The scores of a forecast from one date, (variables, lead times, regions); nothing where there is
// no truth, or no cell.
struct ForecastScores {
  int64_t start_s = 0;
  std::vector<std::optional<FieldScores>> scores;
  size_t num_without_truth = 0;  // lead times
};

// What forecasts are scored against; references outlive it.
struct ScoreSetup {
  Truth& truth;
  std::vector<std::vector<double>> weights;  // (regions, N)
  const Climatology* climatology = nullptr;  // of the variables that are scored, or null
  int64_t threads = 1;                       // that score variables at the same time
};

// Reads the truth of the next lead time meanwhile. Results do not depend on the number of threads.
// Throws DataError if the forecast lacks a variable or a lead time, or has other cells.
ForecastScores score_forecast(const ForecastReader& forecast, const ScoreSetup& setup,
                              const ScoredParts& parts);

// Position of a lead time in a forecast. Throws DataError naming the forecast.
size_t lead_time_in(const ForecastReader& forecast, int64_t lead_s);

// Means over forecasts, each figure over those that have it; roots are taken by the reader.
struct MeanScores {
  FieldScores mean;
  int64_t num_forecasts = 0;
};
std::vector<MeanScores> mean_scores(std::span<const ForecastScores> forecasts, size_t num_parts);

}  // namespace aifs::verify
