// SPDX-License-Identifier: Apache-2.0
// run.mode "io": reads what training would read, in its order, and does nothing with it.
#pragma once

#include <c10/core/Device.h>

#include "app/run/run_config.h"
#include "parallel/communicator.h"

namespace aifs::app {

// Reads the batches of train.max_steps steps (or of train.max_epochs epochs) on all ranks, each its
// cells and samples; says samples/s, GB/s and how busy the threads are every log.every_steps and at
// the end. Stops early if asked to. Throws ConfigError, DataError. Collective.
void run_io(const RunConfig& config, parallel::Communicator& world, const c10::Device& device);

}  // namespace aifs::app
