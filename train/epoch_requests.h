// SPDX-License-Identifier: Apache-2.0
// Which samples a rank asks for in an epoch, and how long each is: the same for whoever reads them.
#pragma once

#include <vector>

#include "data/loader/data_loader.h"
#include "data/loader/sampler.h"
#include "train/options.h"
#include "train/output/loop_state.h"
#include "train/rollout.h"

namespace aifs::train {

struct EpochSetup {
  const data::DatasetInfo& info;
  Window window;
  data::SamplerOptions sampling;
  const TrainOptions& train;
  std::vector<const data::DatasetInfo*> further = {};  // read beside it: same dates, other gaps
};

// Does what check_training_samples() does for each of the datasets of a run; throws DataError, too,
// if no training sample that is long enough has the same dates in all of them.
void check_training_samples(const std::vector<const data::DatasetInfo*>& datasets,
                            const Window& window, int64_t longest);

// Returns what is left of the epoch at hand. Samples of an epoch are those that its longest rollout
// can use; where rollouts grow by steps that follows from the step that the epoch began with, so
// that the order does not depend on where the epoch is resumed, nor on how long the run is to be.
// Throws DataError if there is no sample for each replica.
std::vector<data::BatchRequest> requests_of_epoch(const EpochSetup& setup, const LoopState& state);

}  // namespace aifs::train
