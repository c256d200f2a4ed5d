// SPDX-License-Identifier: Apache-2.0
// Squared errors of fields times their scalers, added up over variables by one kernel of a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace aifs::train {

// True if there is a kernel: fp32 fields of one shape, contiguous on a GPU, and at most four
// factors (five dimensions each) that act on time, grid and variables alone.
bool squared_errors_fit(const at::Tensor& prediction, const at::Tensor& target,
                        const std::vector<at::Tensor>& factors);

// The sum over variables of (prediction - target)^2 times the factors, times `scale`; fields and
// factors as above, the result (B, T, E, N). Only the prediction has a gradient.
at::Tensor squared_errors(const at::Tensor& prediction, const at::Tensor& target,
                          const std::vector<at::Tensor>& factors, double scale);

}  // namespace aifs::train
