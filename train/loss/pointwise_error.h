// SPDX-License-Identifier: Apache-2.0
// The error of a point, before scalers and sums. New ones are kinds of loss: docs/extending.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace aifs::train {

struct PointwiseError {
  // Takes prediction minus target, element by element and differentiable.
  std::function<at::Tensor(const at::Tensor& difference)> of;
  bool is_square = false;   // d^2, which a GPU has a kernel for
  bool takes_root = false;  // the loss is the root of the sum
};

// d^2.
PointwiseError mse_error();

}  // namespace aifs::train
