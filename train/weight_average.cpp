// SPDX-License-Identifier: Apache-2.0
#include "train/weight_average.h"

#include <ATen/ATen.h>

namespace aifs::train {

void WeightAverage::update(const at::Tensor& weights) {
  ++num_updates_;
  if (num_updates_ == 1) {
    values_ = weights.detach().clone();
    return;
  }
  const double share =
      kind_ == AverageKind::kMean ? 1.0 / static_cast<double>(num_updates_) : 1.0 - decay_;
  values_.lerp_(weights.detach(), share);
}

}  // namespace aifs::train
