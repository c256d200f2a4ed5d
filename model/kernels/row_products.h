// SPDX-License-Identifier: Apache-2.0
// Matrix products of many rows of few columns on the CPU, fp32 and fp64, without autograd. Results
// do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// True if the functions below take such rows and matrices at most that wide. The library is as fast
// for wider ones.
inline constexpr int64_t kWidestRowProduct = 512;
bool row_products_support(const at::Tensor& rows, int64_t widest);

// Returns x b + addend (undefined: none) for few columns: x (rows, K), b (K, N), of any strides.
at::Tensor product_rows(const at::Tensor& x, const at::Tensor& b, const at::Tensor& addend = {});
// Adds d^T x to `sum`. d and x are contiguous; rows of `sum` may be apart.
void add_outer_product(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x);

}  // namespace aifs::model
