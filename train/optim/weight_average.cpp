// SPDX-License-Identifier: Apache-2.0
#include "train/optim/weight_average.h"

#include <ATen/ATen.h>

namespace aifs::train {

void WeightAverage::prepare(const at::Tensor& like) {
  values_ = at::zeros_like(like.detach());
}

void WeightAverage::update(const at::Tensor& weights) {
  ++num_updates_;
  if (num_updates_ == 1) {
    if (!values_.defined()) prepare(weights);
    values_.copy_(weights.detach());
    return;
  }
  const double share =
      kind_ == AverageKind::kMean ? 1.0 / static_cast<double>(num_updates_) : 1.0 - decay_;
  values_.lerp_(weights.detach().to(values_.device()), share);
}

}  // namespace aifs::train
