// SPDX-License-Identifier: Apache-2.0
// A checkpoint of Anemoi's as a run: `aifs-train import FILE RUN`, without Python.
#pragma once

#include "app/cli.h"
#include "core/file_io.h"
#include "parallel/process_mesh.h"

namespace aifs::app {

// True if what is to be imported is a file: a checkpoint. Else it is a folder.
bool is_checkpoint_file(const std::string& path);

// The overrides of a command line, and behind them the graph file that an import will write.
std::vector<std::string> with_graph_file(const CommandLine& command);

// Makes the run that the command line names, of weights, graph and, unless --config names another
// one, configuration of a checkpoint; a training goes on where it was. Says in the log what of
// Anemoi's configuration is not honoured. Returns the path of the checkpoint of the run. Throws
// ConfigError where the model of --config differs, or what shapes the model is not known here, and
// DataError. Local, on the CPU.
fs::path import_checkpoint(const CommandLine& command, const parallel::ProcessMesh& mesh);

}  // namespace aifs::app
