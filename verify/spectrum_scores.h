// SPDX-License-Identifier: Apache-2.0
// Power spectra of forecasts, of the truth and of their difference, by variable and lead time.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verify/scores.h"
#include "verify/spectra.h"

namespace aifs::verify {

// A spectrum that is wanted of every field.
struct SpectrumKind {
  std::string name;                      // "zonal" or "degree"
  std::string region;                    // whose band of latitudes it is of; "global" of degrees
  std::vector<double> row_weights = {};  // (rows) of zonal ones
};

// "zonal" gives one for each region that reaches around the globe, its rows weighted with the
// cosine of latitude; "degree" one. Throws ConfigError naming `option`: for other names, for
// cells that are no rows around the globe, degrees of grids that are not Gaussian, and "zonal"
// where no region reaches around the globe and has a row.
std::vector<SpectrumKind> spectrum_kinds(const std::vector<std::string>& names,
                                         const FieldSpectra& spectra,
                                         const std::vector<Region>& regions,
                                         const std::string& option);
// The transforms of the cells of a forecast. Throws ConfigError as above.
FieldSpectra spectra_of(const ForecastReader& forecast, const std::string& option);

struct SpectrumSetup {
  const FieldSpectra& spectra;
  std::vector<SpectrumKind> kinds;
  Truth& truth;  // of the variables of the parts
  int64_t threads = 1;
};

// Sums over forecasts and members.
struct SpectrumSum {
  PowerSpectra powers;
  int64_t count = 0;
};

// (variables, lead times, kinds).
std::vector<SpectrumSum> make_spectrum_sums(const SpectrumSetup& setup, const ScoredParts& parts);
// Adds a forecast; lead times without truth are left out. Throws DataError as score_forecast().
void add_forecast(const ForecastReader& forecast, const SpectrumSetup& setup,
                  const ScoredParts& parts, std::vector<SpectrumSum>& sums);

// One object for each variable, lead time and kind that has fields: "variable", "lead_time_h",
// "kind", "region", "fields", and lists of mean powers by wavenumber or degree, from 0:
// "forecast", "truth", "error".
std::vector<nlohmann::ordered_json> spectrum_rows(const SpectrumSetup& setup,
                                                  const ScoredParts& parts,
                                                  const std::vector<SpectrumSum>& sums);
// One line for each wavenumber of each row.
std::string spectra_csv(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace aifs::verify
