// SPDX-License-Identifier: Apache-2.0
// `aifs-train forecast`: what the command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<std::string> variables;  // empty: all outputs
  std::vector<std::string> constant;   // variables that are the same at all dates
  std::string format = "netcdf";       // or "zarr"
  int compression = 1;                 // of netCDF
};

// Adds `forecast`, which --config and --set may follow. `command` is filled by parsing.
CLI::App* add_forecast_command(CLI::App& app, ForecastCommand& command);

// Start dates of a command in ascending order, each once, in seconds since 1970. Throws ConfigError
// naming the option.
std::vector<int64_t> start_dates(const ForecastCommand& command);

}  // namespace aifs::app
