// SPDX-License-Identifier: Apache-2.0
// When a run validates, writes checkpoints and ends.
#pragma once

#include <chrono>
#include <functional>

#include "train/options.h"
#include "train/output/loop_state.h"

namespace aifs::train {

class Cadence {
 public:
  // `should_stop` may be null.
  Cadence(const TrainOptions& train, const CheckpointOptions& checkpoint,
          std::function<bool()> should_stop)
      : train_(train), checkpoint_(checkpoint), should_stop_(std::move(should_stop)) {}

  // The time limit counts from here, and so does the time to the first checkpoint.
  void start() { start_ = saved_ = std::chrono::steady_clock::now(); }

  bool validates(const LoopState& state) const;
  bool saves(const LoopState& state) const;
  // True if the run may write checkpoints before it ends.
  bool saves_meanwhile() const {
    return checkpoint_.every_steps > 0 || checkpoint_.every_epochs > 0;
  }
  // True if a run that ends here validates, whatever its cadence.
  bool validates_at_end(const LoopState& state) const;

  bool at_step_limit(const LoopState& state) const;
  // True at the limit of steps or epochs.
  bool at_limit(const LoopState& state) const;
  // True on a rank that is asked to stop, or whose time is over.
  bool wants_to_stop() const;

 private:
  TrainOptions train_;
  CheckpointOptions checkpoint_;
  std::function<bool()> should_stop_;
  std::chrono::steady_clock::time_point start_, saved_;
};

}  // namespace aifs::train
