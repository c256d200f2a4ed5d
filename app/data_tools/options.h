// SPDX-License-Identifier: Apache-2.0
// `aifs-train data ...`: what the command line says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace aifs::app {

struct DataCommand {
  enum class Kind { kInfo, kCheck, kStats, kReshape, kSynth, kBench };
  Kind kind = Kind::kInfo;
  std::string store, to;
  bool json = false;
  int64_t threads = 0;
  double margin = 1.0;     // check
  std::string start, end;  // stats; synth: start
  std::vector<std::string> tendencies;
  bool write = false;
  // reshape, synth
  int format = 0, level = -1;
  std::string codec;
  int64_t dates = 0, cells = 0, cell_chunks = 0, shard_dates = 0, shard_cells = 0;
  bool consolidated = false;
  // synth
  std::string grid = "o32", frequency = "6h", values = "position";
  std::vector<std::string> variables;
  int64_t num_variables = 10, num_dates = 20, members = 1;
  // bench
  std::vector<int64_t> readers;
  int64_t batches = 50;
  double share = 1.0;
  bool warm_only = false;
  std::string device = "cpu";
};

// Adds `data` with its commands. `command` is filled by parsing.
CLI::App* add_data_commands(CLI::App& app, DataCommand& command);

}  // namespace aifs::app
