// SPDX-License-Identifier: Apache-2.0
// Checkpoints as users name them: by their folder, or by that of a run.
#pragma once

#include <string>

#include "train/checkpoint.h"

namespace aifs::app {

// What the user names: a checkpoint, or a folder that holds some (the newest sound one is taken).
// Throws DataError if there is none, saying what else is there: a zip archive, a file of a
// checkpoint. `named_by` is who names it ("init.from", "--resume"), for messages.
train::CheckpointInfo find_checkpoint(const fs::path& given, const std::string& named_by);

}  // namespace aifs::app
