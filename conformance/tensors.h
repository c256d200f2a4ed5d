// SPDX-License-Identifier: Apache-2.0
// Reference tensors as LibTorch tensors, and how far apart two are.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/safetensors.h"

namespace aifs::conformance {

// A copy with the stored type; throws DataError naming the tensor if it is not there.
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name);
at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name, at::ScalarType dtype);

// Largest absolute element, in double; 0 for an empty tensor.
double max_abs(const at::Tensor& x);
// Largest absolute difference, in double; infinity if shapes or NaN positions differ.
double max_difference(const at::Tensor& a, const at::Tensor& b);
// Returns the largest difference of tensors in which one time (or another axis of length 1) of one
// stands for all of the other's.
double max_difference_of_repeated(const at::Tensor& a, const at::Tensor& b);
// |a - b| / |b| of scalars; |a - b| where b is 0.
double relative_difference(double a, double b);

}  // namespace aifs::conformance
