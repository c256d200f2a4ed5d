// SPDX-License-Identifier: Apache-2.0
// Scores of forecasts against observations at points.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "verify/scores.h"
#include "verify/stations.h"

namespace aifs::verify {

// nearest: the value of the nearest cell; inverse_distance: of the four nearest, weighted with one
// over their distance.
enum class PointMethod { kNearest, kInverseDistance };

constexpr auto enum_table(PointMethod) {
  using enum PointMethod;
  return std::to_array<EnumName<PointMethod>>(
      {{kNearest, "nearest"}, {kInverseDistance, "inverse-distance"}});
}

// From cells to stations. Immutable.
class PointMap {
 public:
  // Stations that lie further from their nearest cell than that from its fourth neighbour are
  // outside of the cells: they get NaN, and are counted.
  PointMap(const ForecastReader& forecast, const std::vector<Station>& stations,
           PointMethod method);

  int64_t num_outside() const { return num_outside_; }
  // (N) -> (S); NaN where a cell that counts is.
  std::vector<float> operator()(std::span<const float> field) const;

 private:
  struct Share {
    size_t cell;
    double weight;
  };
  std::vector<std::vector<Share>> shares_;  // (S), none outside
  int64_t num_outside_ = 0;
};

struct StationSetup {
  const Observations& observations;
  const PointMap& map;
  std::vector<Region> regions;
  std::vector<int64_t> lead_times_s;
  int64_t threads = 1;
};

// Sums over observations, which count the same; (variables of the observations, lead times,
// regions).
struct StationSum {
  FieldScores sum;  // times the number of observations
  double num_observations = 0.0;
};
std::vector<StationSum> make_station_sums(const StationSetup& setup);
// Adds what there is at the valid dates of a forecast. Throws DataError if the forecast lacks a
// lead time.
void add_forecast(const ForecastReader& forecast, const StationSetup& setup,
                  std::vector<StationSum>& sums);

// One object for each variable, lead time and region with observations: "variable", "lead_time_h",
// "region", "observations", "rmse", "bias", "mae", and of ensembles "spread", "crps",
// "spread_skill".
std::vector<nlohmann::ordered_json> station_rows(const StationSetup& setup,
                                                 const std::vector<StationSum>& sums,
                                                 int64_t num_members);
// Variables by lead times in one region: RMSE and bias; "" if there are no observations.
std::string station_table(const StationSetup& setup, const std::vector<StationSum>& sums,
                          size_t region);

}  // namespace aifs::verify
