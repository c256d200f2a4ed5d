// SPDX-License-Identifier: Apache-2.0
// Kernel scores of an ensemble: for a distance f,
//
//   mean_i f(x_i - y) - c sum_{i<j} f(x_i - x_j)
//
// (Gneiting and Raftery 2007, J. Am. Stat. Assoc. 102, 359-378). The distances of all pairs are
// never alive together: the backward pass computes each anew.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace aifs::train {

// Returns what a difference of two fields weighs; differentiable, the same shape for every pair.
using Distance = std::function<at::Tensor(const at::Tensor&)>;

// c of a score that is fair (1), the plain one (0), or between (Lang et al. 2024, almost fair).
double pair_coefficient(int64_t members, double alpha);

// `members` (B, T, E, ...), `truth` (B, T, 1, ...); the result has the shape of the distance of
// one member, (B, T, 1, ...). E >= 2. Real or complex.
at::Tensor kernel_score(const at::Tensor& members, const at::Tensor& truth, double coefficient,
                        const Distance& distance);

// |x|, with gradient 0 at 0 (complex: the modulus).
at::Tensor absolute(const at::Tensor& x);
// sqrt(x) for x >= 0 with gradient 0 at 0.
at::Tensor safe_sqrt(const at::Tensor& x);

// sum over `axes` of weights * (a - b)^2 for the E pairs (x_i, y), then the E (E - 1) / 2 pairs
// (x_i, x_j), i < j, along axis 2 of the result (axes keep size 1). In fp64. `weights` broadcasts
// to one member and gets no gradient.
at::Tensor pair_square_sums(const at::Tensor& members, const at::Tensor& truth,
                            const at::Tensor& weights, at::IntArrayRef axes);

}  // namespace aifs::train
