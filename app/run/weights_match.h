// SPDX-License-Identifier: Apache-2.0
// Whether weights of a checkpoint are the same function in a run that they were where they were
// trained: graph and options of the network (for data see app/run/data_match.h).
#pragma once

#include <string>
#include <vector>

#include "app/run/run_config.h"
#include "app/run/saved_data.h"
#include "train/output/checkpoint.h"
#include "train/output/init_weights.h"

namespace aifs::app {

// Returns warnings. Throws DataError for another graph or another network where weights are scored,
// exported or trained on; where they start a new run, ConfigError for another graph unless
// init.other_graph allows it. `graph_hash` is that of the run. Local.
std::vector<std::string> check_weights(const train::CheckpointInfo& checkpoint, WeightUse use,
                                       const RunConfig& config, const std::string& graph_hash);

// Returns what was not taken of another run's weights as it is, in words, a tensor each: new, not
// used, taken by variable, or made of this run's data. Adapters are left to the report's table.
std::vector<std::string> to_lines(const train::InitReport& report);

}  // namespace aifs::app
