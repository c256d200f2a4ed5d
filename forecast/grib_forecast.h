// SPDX-License-Identifier: Apache-2.0
// Forecasts as GRIB files of edition 2: one file for each start date, one message for each lead
// time, member and variable, in this order. Parameters and levels follow from the names of Anemoi's
// variables, which are those of ECMWF's tables: "2t", "t_500" (of pressure levels in hPa, or of
// model levels where the dataset says so), "tp". Needs ecCodes.
//
// Where cells are on no grid that GRIB has a name for, the messages "lat" and "lon" come first.
// What GRIB has no place for is in FILE.json: identity, model, program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "forecast/forecast_file.h"

namespace aifs::forecast {

struct GribOptions {
  int64_t bits = 16;                         // of a packed value
  std::map<std::string, std::string> names;  // of variables -> shortName or paramId
  // Keys that every message gets after the others, in order.
  std::vector<std::pair<std::string, std::string>> keys;
};

// The file is written beside `path`, under a name of its own, and renamed by finish(). Throws
// ConfigError (path "--grib-names" or "--grib-set") for variables and keys that GRIB does not know,
// and for units that are others than those of the parameter, Error naming the file.
std::unique_ptr<ForecastFile> create_grib_forecast(const fs::path& path, ForecastContents contents,
                                                   const GribOptions& options);

// Throws as create_grib_forecast() for what cannot be written; makes no file.
void check_grib(const ForecastContents& contents, const GribOptions& options);

// As forecast_identity() of a file.
std::string grib_forecast_identity(const fs::path& path);

}  // namespace aifs::forecast
