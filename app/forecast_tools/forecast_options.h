// SPDX-License-Identifier: Apache-2.0
// `aifs-train forecast`: what the command line says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "forecast/cell_map.h"
#include "forecast/grib_forecast.h"

namespace CLI {
class App;
}

namespace aifs::app {

struct ForecastCommand {
  std::string from;                        // run or checkpoint
  std::vector<std::string> dates;          // of the newest input state
  std::string first, last, every = "24h";  // or all from the first to the last
  std::string lead_time = "10d";
  std::string out;                     // folder
  std::string save_every = "60s";      // of what an interrupted forecast goes on from
  std::vector<std::string> variables;  // empty: all outputs
  std::vector<std::string> constant;   // variables that are the same at all dates
  std::vector<std::string> states;     // files of the input states; empty: the dataset
  std::string format = "netcdf";       // or "zarr", "grib"
  int compression = 1;                 // of netCDF
  int grib_bits = 16;
  std::vector<std::string> grib_names, grib_keys;          // "variable=parameter", "key=value"
  std::string area, grid, interpolation = "conservative";  // of the files; empty: the model's cells
};

// Adds `forecast`, which --config and --set may follow. `command` is filled by parsing.
CLI::App* add_forecast_command(CLI::App& app, ForecastCommand& command);

// Start dates of a command in ascending order, each once, in seconds since 1970; none where states
// come from files and no dates are named. Throws ConfigError naming the option.
std::vector<int64_t> start_dates(const ForecastCommand& command);

// Reads the options of GRIB files. Throws ConfigError.
forecast::GribOptions grib_options(const ForecastCommand& command);

// Seconds between two restart files. Throws ConfigError.
double save_every_s(const ForecastCommand& command);

// The grid and the area of the files, if they are not all cells of the model. Throw ConfigError.
std::optional<forecast::RegularGrid> file_grid(const ForecastCommand& command);
std::optional<forecast::Area> file_area(const ForecastCommand& command);

}  // namespace aifs::app
