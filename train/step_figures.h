// SPDX-License-Identifier: Apache-2.0
// What a step of the trainer has found out so far: for the log, and for what ranks agree on.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/nonfinite.h"
#include "train/output/loop_state.h"
#include "train/pipeline_losses.h"
#include "train/training_step.h"

namespace aifs::train {

struct StepFigures {
  double loss = 0.0, lr = 0.0, step_s = 0.0, data_s = 0.0;
  std::optional<double> gradient_norm, loss_scale;  // where there are such
  int64_t rollout = 1, samples = 0, batches = 1;
  std::array<uint32_t, 2> place = {};  // epoch and number of the batch at hand
  bool stop = false, skipped = false;
  bool saves = false;          // a checkpoint is due by the main rank's clock: all ranks know it
  bool dropped = false;        // some rank lacks a batch: the same on all ranks
  bool gave_up = false;        // this rank was to stop while it waited for data
  std::exception_ptr failure;  // what reading data or a pass threw on this rank
  bool finite = true;          // all losses on all ranks
  NonfiniteReport bad;         // of this rank's first loss that is not finite
  PipelineLosses losses;

  // A pass over the batch at hand, which is the `last` of its step or not.
  StepPass pass(bool last) const {
    return {.rollout = rollout, .batches = batches, .last = last, .place = place};
  }
};

// A line of metrics.jsonl; `state` is that after the step.
nlohmann::ordered_json to_json(const StepFigures& figures, const LoopState& state);
// The members that such a line and its rates may have, in their order.
std::vector<std::string> step_columns();

}  // namespace aifs::train
