// SPDX-License-Identifier: Apache-2.0
#include "train/output/loop_state.h"

#include <ATen/ATen.h>

namespace aifs::train {

at::Tensor to_tensor(const LoopState& state) {
  return at::tensor({static_cast<double>(state.step), static_cast<double>(state.epoch),
                     static_cast<double>(state.batch_in_epoch), state.loss_scale,
                     static_cast<double>(state.loss_scale_steps), state.stop_count.best,
                     static_cast<double>(state.stop_count.without_gain),
                     static_cast<double>(state.stop_count.last_step)},
                    at::kDouble);
}

LoopState loop_state_of(const at::Tensor& tensor) {
  const double* numbers = tensor.const_data_ptr<double>();
  const auto count = [&](size_t i) { return static_cast<int64_t>(numbers[i]); };
  return {.step = count(0),
          .epoch = count(1),
          .batch_in_epoch = count(2),
          .loss_scale = numbers[3],
          .loss_scale_steps = count(4),
          .stop_count = {.best = numbers[5], .without_gain = count(6), .last_step = count(7)}};
}

}  // namespace aifs::train
