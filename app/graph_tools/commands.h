// SPDX-License-Identifier: Apache-2.0
// `aifs-train graph ...`: runs a command, prints what it has to say.
#pragma once

#include <string>
#include <vector>

#include "app/graph_tools/options.h"

namespace aifs::app {

// The configuration of a command: --config (empty: none) and --set.
struct GraphConfig {
  std::string file;
  std::vector<std::string> overrides;
};

// The exit code of the program. Throws ConfigError, DataError, Error.
int run_graph_command(const GraphCommand& command, const GraphConfig& config);

}  // namespace aifs::app
