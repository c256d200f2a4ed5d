// SPDX-License-Identifier: Apache-2.0
// Gradients against central differences in fp64, for any function of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace aifs::test {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// How far the gradients of sum(w * function(inputs)), w fixed random weights, are from central
// differences: the largest difference over all elements of all inputs, relative to the largest
// gradient. Inputs are fp64; every element costs two calls. The function must be smooth near them.
double gradient_error(const TensorFunction& function, const std::vector<at::Tensor>& inputs);

// Returns what gradient_error() may be. A step h = epsilon^(1/3) costs epsilon / h by cancellation
// and h^2 by truncation, each epsilon^(2/3) times the ratio of value or third derivative to
// gradient.
double gradient_tolerance();

}  // namespace aifs::test
