// SPDX-License-Identifier: Apache-2.0
// `aifs-train report`: what the command line says.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace aifs::app {

struct ReportCommand {
  std::vector<std::string> runs;       // run folders
  std::vector<std::string> scores;     // what `verify --out` wrote: folders or files
  std::vector<std::string> forecasts;  // what `forecast` wrote: folders or files
  std::string truth;                   // run or checkpoint with the truth; empty: --config, or none
  std::string date;                    // that the forecasts of the maps start from; empty: first
  std::vector<std::string> variables;  // of the maps; empty: the first ones
  std::vector<std::string> lead_times;  // of the maps; empty: evenly chosen
  std::string title;                    // empty: the names of the runs
  std::string out = "report.html";
  double max_mb = 10.0;
};

// Adds `report`, which --config and --set may follow. `command` is filled by parsing.
CLI::App* add_report_command(CLI::App& app, ReportCommand& command);

}  // namespace aifs::app
