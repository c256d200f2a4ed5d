// SPDX-License-Identifier: Apache-2.0
// Trades time for memory: a part of the network keeps its inputs only, and runs once more in the
// backward pass (gradient checkpointing).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "model/base/host_stash.h"

namespace aifs::model {

using TensorsFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// A part whose first inputs are a state, and whose results are the one after it, of the same sizes.
struct StateChange {
  size_t width = 0;  // tensors of the state; 0: it is no such part
  // The results are those of the part around it: where these are unread they are not computed.
  bool ends_part = false;
  // Keeps the state before (HostStash::put()); null: it is kept like the other inputs.
  HostStash* stash = nullptr;
  bool stays = false;
  size_t num_here = 1;
};

// part(inputs), differentiable in the inputs and in every parameter that `part` uses. `part` must
// give the same result each time and outlive the backward pass. With gradients off it just runs.
std::vector<at::Tensor> recompute(const TensorsFunction& part,
                                  const std::vector<at::Tensor>& inputs,
                                  const StateChange& change = {});

// True if a part runs again on this thread: its gradients are wanted, its results read by nobody.
// The operation that ends a part may leave its result uncomputed then.
bool results_unread();

// While it lives, results on this thread are read, as those of a layer before the last of a part.
class ResultsRead {
 public:
  explicit ResultsRead(bool read = true);
  ~ResultsRead();
  ResultsRead(const ResultsRead&) = delete;
  ResultsRead& operator=(const ResultsRead&) = delete;

 private:
  bool before_;
};

}  // namespace aifs::model
