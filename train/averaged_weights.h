// SPDX-License-Identifier: Apache-2.0
// Averaged weights in place of the live ones, for a validation.
#pragma once

#include "train/training_step.h"

namespace aifs::train {

// Puts them there, and all values on every rank, until restore() or the end of the scope, whatever
// ends it. Collective over the ranks with the same parameters.
class AveragedWeights {
 public:
  // If the weights are not averaged, or not yet, the live ones remain. `lost` is set if they
  // could not be put back.
  AveragedWeights(const TrainingStep& step, bool& lost);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

  // Collective as the constructor.
  void restore();

 private:
  ParameterShards& shards_;
  bool& lost_;
  bool is_restored_ = false;
  at::Tensor live_;
};

}  // namespace aifs::train
