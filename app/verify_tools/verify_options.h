// SPDX-License-Identifier: Apache-2.0
// `aifs-train verify`: what the command line says.
#pragma once

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
};

// Adds `verify`, which --config and --set may follow. `command` is filled by parsing.
CLI::App* add_verify_command(CLI::App& app, VerifyCommand& command);

}  // namespace aifs::app
