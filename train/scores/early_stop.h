// SPDX-License-Identifier: Apache-2.0
// Ends a run whose validations gain nothing any more ("train.early_stop").
#pragma once

#include "core/file_io.h"
#include "train/scores/score_choice.h"
#include "train/scores/stop_count.h"

namespace aifs::train {

// Takes the score of a validation at `step` into the count: a gain begins it anew, anything else,
// NaN included, adds one. A step that was counted before is not counted again.
void count_score(const EarlyStopOptions& options, double score, int64_t step, StopCount& count);

// Does so with the lines of a validation.jsonl, in their order; those of failed validations, and
// damaged ones, do not count. For runs that go on from a checkpoint written before a validation of
// its step. Throws DataError if the file is there and cannot be read.
void count_lines(const EarlyStopOptions& options, const fs::path& file, StopCount& count);

// True if the configuration of a checkpoint, as JSON, counts by the same score: the count of
// another one says nothing.
bool counts_alike(const EarlyStopOptions& options, const std::string& config_json);

// True if there were `patience` validations in a row without a gain. The same on all ranks that
// have the same count. False if the options are off.
bool stops_early(const EarlyStopOptions& options, const StopCount& count);

}  // namespace aifs::train
