// SPDX-License-Identifier: Apache-2.0
// `aifs-train watch`: runs that go on, in a terminal.
#pragma once

#include <string>
#include <vector>

namespace aifs::app {

struct WatchCommand {
  std::vector<std::string> runs;
  bool once = false;     // print one frame; so it is where standard output is no terminal
  double every_s = 1.0;  // between frames
  int columns = 0;       // 0: those of the terminal, 100 without one
};

// Prints what the files of runs say: again and again until q, ctrl-c or another signal, on a screen
// of its own, or once. Reads files only. Returns the exit code. Throws DataError for a folder that
// is none of a run, ConfigError for one that is named twice.
int run_watch_command(const WatchCommand& command);

}  // namespace aifs::app
