// SPDX-License-Identifier: Apache-2.0
// Finds out whether a configuration would run, without building a graph or a network but where
// weights of a checkpoint are to be compared with them.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "app/run/run_config.h"

namespace aifs::app {

// Describes what is meant to be done with the configuration.
struct CheckRequest {
  enum class Use { kTrain, kResume, kValidate };
  Use use = Use::kTrain;
  std::string checkpoint = {};  // to resume or to validate, as the user names it; empty: of run.dir
  bool files = true;            // false: dataset, graph file, weights and GPU are left alone
};

struct CheckReport {
  std::vector<std::string> checked;   // what was looked at, with figures
  std::vector<std::string> warnings;  // sound, but hardly meant
  std::vector<std::string> not_here;  // could not be checked on this machine, or was left out

  // Lines for people, the verdict last.
  std::string text() const;
};

// Checks names of variables, periods, statistics, losses, boundings, the data grid and its graph,
// weights of a checkpoint, the run folder and the device. A graph file is read; a graph is built
// only if such weights are wanted, else a grid of millions of nodes takes seconds. Writes nothing.
// Throws ConfigError or DataError for the first fault; a file that is not there is none, but goes
// to `not_here`. Local, one process.
CheckReport check_config(const RunConfig& config, const CheckRequest& request = {});

// Throws ConfigError for options that the device cannot do.
void check_device(const RunConfig& config, const c10::Device& device);

}  // namespace aifs::app
