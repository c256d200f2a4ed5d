// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline_losses.h"

#include <ATen/ATen.h>

#include <cmath>

namespace aifs::train {

void PipelineLosses::add(const at::Tensor& loss, const std::vector<int64_t>& anchors) {
  if (loss.defined()) losses_.push_back(loss.detach());
  anchors_.push_back(anchors);
}

PipelineLosses::Shared PipelineLosses::share(parallel::Communicator& stages) const {
  const at::Tensor losses = at::zeros({static_cast<int64_t>(anchors_.size())}, at::kDouble);
  if (!losses_.empty()) losses.copy_(at::stack(losses_));
  stages.broadcast(losses, stages.size() - 1);
  Shared shared{.sum = losses.sum().item<double>()};
  shared.bad = shared.sum;
  const double* value = losses.const_data_ptr<double>();
  for (const std::vector<int64_t>& anchors : anchors_) {
    shared.samples += static_cast<int64_t>(anchors.size());
    if (!std::isfinite(*value) && shared.bad_anchors.empty()) {
      shared.bad = *value;
      shared.bad_anchors = anchors;
    }
    ++value;
  }
  return shared;
}

}  // namespace aifs::train
