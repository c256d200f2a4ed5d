// SPDX-License-Identifier: Apache-2.0
// Trades time for memory: a part of the network keeps its inputs only, and runs once more in the
// backward pass (gradient checkpointing).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace aifs::model {

using TensorsFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// part(inputs), differentiable in the inputs and in every parameter that `part` uses. `part` must
// give the same result each time and outlive the backward pass. With gradients off it just runs.
std::vector<at::Tensor> recompute(const TensorsFunction& part,
                                  const std::vector<at::Tensor>& inputs);

// Whether a part runs again on this thread: its gradients are wanted, its results read by nobody.
// The operation that ends a part may leave its result uncomputed then.
bool results_unread();

}  // namespace aifs::model
