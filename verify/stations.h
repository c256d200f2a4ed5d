// SPDX-License-Identifier: Apache-2.0
// Observations at points: a table (CSV) or a netCDF file of time series.
//
// CSV: a head, then a line for each station and time. Columns "station", "latitude", "longitude"
// (degrees), "time" (a date as parse_date() reads it, UTC), then one of each variable, by its name
// in the dataset and in its units. "height" (also "elevation", "altitude") may be there and is not
// used: values are not corrected for it. Empty cells, "nan" and "NA" are missing.
//
// netCDF: time series as CF 1.8 writes them in arrays (section 9.3.1): latitude(station),
// longitude(station), time(time) and variables (station, time) or (time, station).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs::verify {

struct Station {
  std::string name;
  double latitude_deg = 0.0, longitude_deg = 0.0;
};

struct Observations {
  std::string path;
  std::vector<Station> stations = {};       // (S)
  std::vector<std::string> variables = {};  // (V) those of the file that were asked for
  bool has_heights = false;
  // By date in seconds since 1970 UTC: (variables, S), NaN where there is no value.
  std::map<int64_t, std::vector<float>> values = {};
};

// Reads the observations of some variables; others are left out. Throws DataError naming the file,
// and the line of a table, for what cannot be understood: missing columns, cells too few or too
// many, numbers, dates or coordinates that are none, a station in two places or twice at one time;
// and if the file has none of the variables, with near names.
Observations read_observations(const fs::path& path, const std::vector<std::string>& variables);

}  // namespace aifs::verify
