// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline_schedule.h"

#include <algorithm>
#include <deque>

namespace aifs::train {

std::vector<Pass> one_forward_one_backward(int64_t stage, int64_t stages, int64_t batches) {
  const int64_t ahead = std::min(stages - stage - 1, batches);
  std::vector<Pass> order(static_cast<size_t>(ahead), Pass::kForward);
  for (int64_t batch = ahead; batch < batches; ++batch)
    order.insert(order.end(), {Pass::kForward, Pass::kBackward});
  order.insert(order.end(), static_cast<size_t>(ahead), Pass::kBackward);
  return order;
}

void run_passes(const std::vector<Pass>& order,
                const std::function<at::Tensor(int64_t batch)>& forward,
                const std::function<void(const at::Tensor& total, int64_t batch)>& backward) {
  std::deque<at::Tensor> in_flight;
  int64_t begun = 0, done = 0;
  for (const Pass pass : order) {
    if (pass == Pass::kForward) {
      in_flight.push_back(forward(begun++));
    } else {
      // Its graph is freed as the backward pass goes through it.
      backward(in_flight.front(), done++);
      in_flight.pop_front();
    }
  }
}

}  // namespace aifs::train
