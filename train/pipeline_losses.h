// SPDX-License-Identifier: Apache-2.0
// The losses of a step's batches, where only the last stage of a pipeline has them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "parallel/communicator.h"

namespace aifs::train {

class PipelineLosses {
 public:
  // Adds that of the next batch, which began at these rows of the dataset; undefined but on the
  // last stage.
  void add(const at::Tensor& loss, const std::vector<int64_t>& anchors);

  struct Shared {
    double sum = 0.0;
    int64_t samples = 0;
    // The first one that is not finite, and its rows; none: the sum.
    double bad = 0.0;
    std::vector<int64_t> bad_anchors = {};
  };
  // Returns what all stages know then. Collective over them.
  Shared share(parallel::Communicator& stages) const;

 private:
  std::vector<at::Tensor> losses_;
  std::vector<std::vector<int64_t>> anchors_;
};

}  // namespace aifs::train
