// SPDX-License-Identifier: Apache-2.0
// A linear map with weight (out, in) and, unless it is left out, bias (out), started as
// torch.nn.Linear. It works in the type of its input. In a scope with tensor ranks it may take
// slices of the input channels, give slices of the output channels, or both.
#pragma once

#include "model/layers/joint_linear.h"

namespace aifs::model {

enum class LinearStart { kUniform, kZeros };

// Which channels are sliced over tensor ranks. A linear from whole to sliced channels is given rows
// that are copied() already.
struct LinearSlices {
  bool in = false, out = false;
  int64_t unit = 1;  // channels that stay on one rank (a head)
};

struct Linear : LinearMap {
  Linear() = default;
  Linear(const ParameterScope& scope, int64_t in, int64_t out, bool with_bias = true,
         LinearStart start = LinearStart::kUniform, const LinearSlices& slices = {});
  // Collective over the tensor ranks if the input is sliced.
  at::Tensor forward(const at::Tensor& x) const;

 private:
  TensorRanks ranks_;  // over which products are summed
  LinearSlices slices_;
};

}  // namespace aifs::model
