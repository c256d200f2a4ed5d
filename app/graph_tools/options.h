// SPDX-License-Identifier: Apache-2.0
// `aifs-train graph ...`: what the command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace aifs::app {

struct GraphCommand {
  enum class Kind { kBuild, kInfo, kCompare, kPlot, kImport };
  Kind kind = Kind::kInfo;
  std::string file, other;  // graph files; empty: the graph of --config; of import: tensors
  std::string out;
  std::vector<std::string> sets;  // node sets that are looked at; empty: all
  bool json = false;
  double tolerance = 0.0;          // compare
  int64_t max_edges = 12'000'000;  // plot; 0: no limit
};

// Adds `graph` with its commands, which --config and --set may follow. `command` is filled by
// parsing.
CLI::App* add_graph_commands(CLI::App& app, GraphCommand& command);

}  // namespace aifs::app
