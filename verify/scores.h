// SPDX-License-Identifier: Apache-2.0
// Scores of one forecast field, and of all fields of a forecast, against the dataset.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "verify/forecast_reader.h"
#include "verify/regions.h"

namespace aifs::verify {

// Weighted means over the cells of a region, physical units. Of several members, error, absolute
// error and activity are those of their mean.
struct FieldScores {
  double squared_error = 0.0;
  double error = 0.0;  // forecast minus truth
  double absolute_error = 0.0;
  double persistence_squared_error = 0.0;       // of the truth at the start
  double activity = 0.0, truth_activity = 0.0;  // variance over the cells
  double spread = 0.0;                          // variance of the members (n - 1); 0 of one
  double crps = 0.0;  // fair: that of infinitely many such members; of one the absolute error
};

// The fields of a variable at one time. Cells where one of them is NaN do not count.
struct FieldTriple {
  std::span<const float> forecast;      // (E, N)
  std::span<const float> truth, start;  // (N)
};

// Nothing if no cell counts. `weights`: (N), not negative.
std::optional<FieldScores> score_field(const FieldTriple& fields, std::span<const double> weights);

// What is scored: the same for all forecasts of a verification.
struct ScoredParts {
  std::vector<std::string> variables;
  std::vector<int64_t> lead_times_s;
  std::vector<Region> regions;

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

// Positions in the dataset of the cells of a forecast. Throws DataError naming the first that the
// dataset has not.
std::vector<int64_t> cells_in(const data::DatasetInfo& info, const ForecastReader& forecast);

// Fields of a dataset by date, of some variables and of the cells of forecasts, which are those of
// all. Keeps what was read last: forecasts from dates near each other share it.
class Truth {
 public:
  // `forecast` has the cells. Throws DataError if the dataset lacks one, or a variable.
  Truth(const data::Dataset& dataset, const ForecastReader& forecast,
        const std::vector<std::string>& variables);

  // (variables, N); null if the dataset has no such date. Throws DataError. Not thread-safe.
  std::shared_ptr<const std::vector<float>> at(int64_t date_s);
  // Throws DataError naming both files if the cells of a forecast are others.
  void check_cells(const ForecastReader& forecast) const;

 private:
  std::shared_ptr<const std::vector<float>> read(int64_t date_s);

  const data::Dataset& dataset_;
  std::string path_;  // of the forecast that has the cells
  std::vector<double> latitudes_deg_, longitudes_deg_;
  std::vector<int64_t> cells_, columns_;
  data::ReadScratch scratch_;
  std::map<int64_t, std::shared_ptr<const std::vector<float>>> kept_;
  std::deque<int64_t> order_;  // of those that are kept, oldest first
};

// Throws DataError if the forecast lacks a variable or a lead time, or has other cells.
ForecastScores score_forecast(const ForecastReader& forecast, Truth& truth,
                              const ScoredParts& parts);

// Means over forecasts, each figure over those that have it; roots are taken by the reader.
struct MeanScores {
  FieldScores mean;
  int64_t num_forecasts = 0;
};
std::vector<MeanScores> mean_scores(std::span<const ForecastScores> forecasts, size_t num_parts);

}  // namespace aifs::verify
