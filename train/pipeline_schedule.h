// SPDX-License-Identifier: Apache-2.0
// In which order a stage of a pipeline works on the batches of an optimiser step (1F1B, Narayanan
// et al. 2019: one forward, one backward).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace aifs::train {

enum class Pass { kForward, kBackward };

// Both kinds of passes go through the batches in order. A stage runs as many passes forward ahead
// as there are stages after it, then one backward for each further one forward: so many batches and
// one more are in flight at most. With one stage each batch goes forward and back before the next.
std::vector<Pass> one_forward_one_backward(int64_t stage, int64_t stages, int64_t batches);

// Runs passes in this order, with the number of the batch from 0: what forward() gives is what
// backward() of the same batch is called on.
void run_passes(const std::vector<Pass>& order,
                const std::function<at::Tensor(int64_t batch)>& forward,
                const std::function<void(const at::Tensor& total, int64_t batch)>& backward);

}  // namespace aifs::train
