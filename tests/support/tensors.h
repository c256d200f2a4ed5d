// SPDX-License-Identifier: Apache-2.0
// Tensors for tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace aifs::test {

// Standard normal fp64 numbers, the same for a seed on every machine.
at::Tensor random_tensor(at::IntArrayRef sizes, uint64_t seed);

// Largest absolute difference, in double; infinity if the shapes differ or a value is NaN.
double max_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace aifs::test
