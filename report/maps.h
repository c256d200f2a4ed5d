// SPDX-License-Identifier: Apache-2.0
// Fields of forecasts from one date, of the truth and of the errors, for the maps of a page; and
// their spectra.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verify/forecast_reader.h"
#include "verify/scores.h"

namespace aifs::report {

struct NamedForecast {
  std::string name;
  const verify::ForecastReader* file = nullptr;  // outlives its use
};

// What the maps show. Empty lists stand for a choice: variables in the order of the file, lead
// times evenly spread with the last one among them, no more than kMost... of either.
struct MapChoice {
  std::vector<std::string> variables;
  std::vector<int64_t> lead_times_s;
};
inline constexpr size_t kMostMapVariables = 8, kMostMapLeadTimes = 12;

// Completes a choice with what all forecasts have. Throws ConfigError (--variables, --lead-times)
// for what one of them lacks, DataError for forecasts from different dates or on different cells.
MapChoice choose_maps(const std::vector<NamedForecast>& forecasts, const MapChoice& wanted);

// Returns {"start", "num_points", "num_cells", "lat", "lon", "lead_times_h", "sources",
// "variables": [{"name", "units", "fields"}], "spectra"}; fields are in 8 bits. Points are thinned
// until all is about `most_bytes` long. `truth` holds the variables of the choice, or is null;
// where it has no such date, nor has the page. Throws ConfigError where even few points are too
// many, DataError.
nlohmann::ordered_json maps_json(const std::vector<NamedForecast>& forecasts,
                                 const MapChoice& choice, verify::Truth* truth, int64_t most_bytes);

}  // namespace aifs::report
