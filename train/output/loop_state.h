// SPDX-License-Identifier: Apache-2.0
// Everything that steers a run and must survive a restart, apart from weights and moments.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "train/scores/stop_count.h"

namespace aifs::train {

struct LoopState {
  int64_t step = 0;            // optimiser steps done
  int64_t epoch = 0;           // the epoch in progress, from 0
  int64_t batch_in_epoch = 0;  // batches of it that were used
  // fp16-mixed: factor of the loss (0: not yet used), and steps since it last changed.
  double loss_scale = 0.0;
  int64_t loss_scale_steps = 0;
  StopCount stop_count = {};
};

// All of it as (8) fp64 on the CPU, and back, to be sent to other ranks. Counts are below 2^53.
at::Tensor to_tensor(const LoopState& state);
LoopState loop_state_of(const at::Tensor& tensor);

// True at the end of every so many steps or epochs (0: never).
inline bool is_due(const LoopState& state, int64_t every_steps, int64_t every_epochs) {
  const bool epoch_ended = state.batch_in_epoch == 0 && state.epoch > 0;
  return (every_steps > 0 && state.step % every_steps == 0) ||
         (every_epochs > 0 && epoch_ended && state.epoch % every_epochs == 0);
}

}  // namespace aifs::train
