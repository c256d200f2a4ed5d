// SPDX-License-Identifier: Apache-2.0
// The row-wise work between the matrix products of an MLP, forward and backward, without autograd:
// on a GPU one kernel each (model/kernels/cuda), on the CPU the same from LibTorch's operators.
//
// Rows are contiguous (rows, C) of any floating type, on a GPU fp32, bfloat16 or half; sums over
// rows and columns, LayerNorm statistics and parameters of norms are fp32 (fp64 for fp64 rows).
// Everything is deterministic.
#pragma once

#include "model/kernels/row_types.h"
#include "model/kernels/segment.h"

namespace aifs::model {

// True if the kernels can work on such rows there: norms at all, or GELUs and sums of columns.
bool row_ops_support(const at::Device& device, at::ScalarType type, int64_t width);
bool gelu_rows_support(const at::Device& device, at::ScalarType type, int64_t width);

// gelu(pre); may take the place of `pre`.
Activated gelu_rows_(const at::Tensor& pre, Keep keep);

// x weight^T + bias; `bias` once wide, once in the type of x.
at::Tensor product_bias(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& working_bias);

// x weight^T + bias + addend (undefined: none), and its GELU; weight in the type of x, `bias` wide.
// One kernel on cards that have it for the sizes (model/kernels/cuda/tall_product.h), a product
// and row kernels elsewhere; so are the next ones.
Activated product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Keep keep, const at::Tensor& addend = {});
// Computes this of [a | b], equally wide, without the concatenation.
Activated pair_product_gelu(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& bias, Keep keep);
// Computes this of e with at_target[target[e]] + at_source[source[e]] in place of the addend.
Activated edge_product_gelu(const at::Tensor& e, const at::Tensor& weight,
                            const at::Tensor& at_target, const at::Tensor& at_source,
                            const at::Tensor& bias, const EdgeIndex& edges, Keep keep);

// `gradient` times the derivative of the GELU, in place. Its sum over rows, the gradient of the
// bias, is added to `bias_gradient` (C) wide. Gives the activated rows, which the weight gradient
// needs: those there are, or gelu(pre).
at::Tensor gelu_backward_(const at::Tensor& gradient, const Activated& x,
                          const at::Tensor& bias_gradient);

// The gradient and the activated rows of gelu_backward_() of the gradient d weight of x; weight (of
// d, of x).
ProductGeluGradient product_gelu_backward(const at::Tensor& d, const at::Tensor& weight,
                                          const Activated& x, const at::Tensor& bias_gradient);

// d weight, and d^T x added to `d_weight` as add_weight_gradient() does: one kernel for x of few
// columns.
at::Tensor linear_backward(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& x,
                           const at::Tensor& d_weight);

// x b, (rows, K) times (K, N).
at::Tensor product(const at::Tensor& x, const at::Tensor& b);

// True if product_sum() is one kernel.
bool product_sum_fits(const at::Tensor& d, const at::Tensor& weight);
// d weight + rows (undefined: none) + at_target[target[e]] (the same); weight (of d, of rows).
at::Tensor product_sum(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& rows,
                       const at::Tensor& at_target = {}, const EdgeIndex* edges = nullptr);

// a times the first columns of a weight and b times the last, as many, + rows (undefined: none).
at::Tensor pair_product_sum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& rows);

// sum_edges() by the kernel made for it.
at::Tensor sum_edge_rows(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets);

// sum += the sum of rows, (C) wide.
void add_column_sums(const at::Tensor& sum, const at::Tensor& rows);

// norm(z) * weight + bias + residual (undefined: none); with edges also its sum at their targets,
// and the rows themselves only if they are wanted.
NormResult norm_rows(const at::Tensor& z, const at::Tensor& residual, const NormParameters& norm,
                     const EdgeIndex* sum_over, bool rows_wanted = true);

// x + addend, rounded, and its norm.
SumAndNorm norm_sum(const at::Tensor& x, const at::Tensor& addend, const NormParameters& norm);

// Backward of norm_rows(): d_rows or d_sums may be undefined, not both. `d_past`, what comes to z
// past the norm, is added to d_z (not with edges). Adds to gradients (C) wide: of weight and bias,
// and the sum of d_z over rows, that of the bias before.
NormGradient norm_backward(const at::Tensor& d_rows, const at::Tensor& d_sums, const at::Tensor& z,
                           const at::Tensor& statistics, const NormParameters& norm,
                           const EdgeIndex* sum_over, const NormSums& sums,
                           bool residual_wanted = true, const at::Tensor& d_past = {});

// sum += d^T x with sums in the type of `sum` (of d, of x), whose rows may be apart. Columns of x
// beyond its own are left out.
void add_weight_gradient(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x);

}  // namespace aifs::model
