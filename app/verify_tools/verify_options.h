// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify`: what the command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace aifs::app {

struct VerifyCommand {
  std::string forecasts;  // folder, or one file
  std::string truth;      // run or checkpoint whose dataset is the truth; empty: --config
  std::string against;    // other forecasts; empty: none
  std::string out;        // folder for the scores; empty: the table alone
  std::vector<std::string> variables;   // empty: all
  std::vector<std::string> lead_times;  // empty: all
  std::vector<std::string> regions{"global"};
  std::vector<std::string> thresholds;  // "tp=0.001", "0.01"; empty: none
  std::string weights = "cosine";       // name of a verify::WeightKind
  bool seasons = false;                 // also by season
  std::string climatology;              // file, or "compute"; empty: none
  std::string climatology_cache;        // folder of computed ones; empty: that of the scores
  std::string climatology_period;       // "FIRST/LAST"; empty: all dates
  int64_t climatology_window_days = 61;
  std::vector<std::string> spectra;            // "zonal", "degree"; empty: none
  std::string stations;                        // file of observations; empty: none
  std::string station_method = "nearest";      // name of a verify::PointMethod
  std::string interpolation = "conservative";  // or "nearest": of the truth to a grid
  int64_t threads = 0;                         // 0: as many as cores
};

// Adds `verify`, which --config and --set may follow. `command` is filled by parsing.
CLI::App* add_verify_command(CLI::App& app, VerifyCommand& command);

}  // namespace aifs::app
