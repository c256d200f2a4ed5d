// SPDX-License-Identifier: Apache-2.0
// What a step of the trainer has found out so far: for the log, and for what ranks agree on.
#pragma once

#include <cstdint>
#include <exception>

#include "train/trainer.h"

namespace aifs::train {

struct Trainer::StepFigures {
  double loss = 0.0, lr = 0.0, step_s = 0.0, data_s = 0.0, gradient_norm = 0.0;
  int64_t rollout = 1, samples = 0, batches = 1;
  bool stop = false, skipped = false;
  bool dropped = false;        // some rank lacks a batch: the same on all ranks
  bool gave_up = false;        // this rank was to stop while it waited for data
  std::exception_ptr failure;  // what reading data threw on this rank
  bool finite = true;          // all losses on all ranks
  NonfiniteReport bad;         // of this rank's first loss that is not finite
  PipelineLosses losses;
};

}  // namespace aifs::train
