// SPDX-License-Identifier: Apache-2.0
// Checkpoints as users name them: by their folder, or by that of a run. What a run may do with
// those that are there.
#pragma once

#include <optional>
#include <string>

#include "app/run/run_config.h"
#include "train/output/checkpoint.h"

namespace aifs::app {

// Returns what the user names: a checkpoint, a folder that holds some (the newest sound one is
// taken), or the best one of a run by <run>/best (checkpoint.keep_best). Throws DataError if there
// is none, saying what else is there: a zip archive, a file of a checkpoint. `named_by` is who
// names it ("init.from", "--resume"), for messages.
train::CheckpointInfo find_checkpoint(const fs::path& given, const std::string& named_by);

// <run.dir>/checkpoints.
fs::path checkpoint_folder(const RunConfig& config);

// A run folder with checkpoints is only continued, never started over: throws ConfigError.
void refuse_to_overwrite(const RunConfig& config);

// The checkpoint to go on from, or none to start afresh. `given`: as the user names it; empty: the
// newest of the run. Throws ConfigError if it is of another run and this one has checkpoints.
std::optional<train::CheckpointInfo> checkpoint_to_resume(const RunConfig& config,
                                                          const std::string& given);
// The checkpoint to score, which must be there: throws DataError.
train::CheckpointInfo checkpoint_to_validate(const RunConfig& config, const std::string& given);

}  // namespace aifs::app
