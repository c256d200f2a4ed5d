// SPDX-License-Identifier: Apache-2.0
// The batches of one training step: reading, forward and backward passes in the order of the
// pipeline, and what all ranks agree on after each.
#pragma once

#include <functional>

#include "train/epoch_feed.h"
#include "train/nonfinite_policy.h"

namespace aifs::train {

class StepPasses {
 public:
  // All outlive it. `wants_to_stop` is asked after every batch, and while waiting for one.
  StepPasses(TrainingStep& step, EpochFeed& feed, const NonfinitePolicy& nonfinite,
             const parallel::ProcessMesh& mesh, std::function<bool()> wants_to_stop)
      : step_(step),
        feed_(feed),
        nonfinite_(nonfinite),
        mesh_(mesh),
        wants_to_stop_(std::move(wants_to_stop)) {}

  // Adds the gradients of the next `figures.batches` batches, and moves `state` past them. Where
  // the loss of any rank is not finite, none adds any or, in a pipeline, the step is not finite;
  // where a batch is missing on any rank, the step is dropped on all. Collective over all ranks.
  void run(StepFigures& figures, LoopState& state);

 private:
  // Returns what a backward pass begins with; undefined: there is none.
  at::Tensor forward(StepFigures& figures, LoopState& state, bool last);
  void backward(const at::Tensor& total, StepFigures& figures, bool last);
  // Runs a pass. False if it has thrown, which figures note, so that all ranks hear of it where
  // they meet next; where ranks work together in it, it throws: they cannot.
  bool tried(const std::function<void()>& pass, StepFigures& figures) const;
  // Adds a batch to the figures of all ranks: its loss, its samples, and the wish to stop. Says
  // whether the loss is finite on all.
  bool agree(StepFigures& figures, double loss, int64_t samples) const;
  // Does so with the losses of a step, which the last stage knows.
  void agree_in_pipeline(StepFigures& figures, const LoopState& state);
  // The loss of this replica, which all its ranks know, or of another one is not finite. All ranks
  // call it.
  void note_bad_loss(StepFigures& figures, const LoopState& state, double loss);

  TrainingStep& step_;
  EpochFeed& feed_;
  const NonfinitePolicy& nonfinite_;
  const parallel::ProcessMesh& mesh_;
  std::function<bool()> wants_to_stop_;
};

}  // namespace aifs::train
