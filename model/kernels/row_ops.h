// SPDX-License-Identifier: Apache-2.0
// The row-wise work between the matrix products of an MLP, forward and backward, without autograd:
// on a GPU one kernel each (model/kernels/cuda), on the CPU the same from LibTorch's operators.
//
// Rows are contiguous (rows, C) of any floating type, on a GPU fp32, bfloat16 or half; sums over
// rows and columns, LayerNorm statistics and parameters of norms are fp32 (fp64 for fp64 rows).
// Everything is deterministic.
#pragma once

#include "model/kernels/segment.h"

namespace aifs::model {

// Whether the kernels can work on such rows there: norms at all, or GELUs and sums of columns.
bool row_ops_support(const at::Device& device, at::ScalarType type, int64_t width);
bool gelu_rows_support(const at::Device& device, at::ScalarType type, int64_t width);

at::Tensor gelu_rows(const at::Tensor& pre);

// pre[e] += at_target[target[e]] + at_source[source[e]] + bias, in place; gives gelu(pre). `bias`
// is wide, see above.
at::Tensor add_ends_and_gelu_(const at::Tensor& pre, const at::Tensor& at_target,
                              const at::Tensor& at_source, const at::Tensor& bias,
                              const EdgeIndex& edges);

// x weight^T + bias + addend (undefined: none), and its GELU; weight in the type of x, `bias` wide.
// One kernel on cards that have it for the sizes (model/kernels/cuda/tall_product.h), a product
// and row kernels elsewhere; so are the next two.
enum class Keep { kPre, kNothing };  // kNothing: `pre` is undefined
struct Activated {
  at::Tensor pre, out;
};
Activated product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Keep keep, const at::Tensor& addend = {});
// e weight^T, then as add_ends_and_gelu_().
Activated edge_product_gelu(const at::Tensor& e, const at::Tensor& weight,
                            const at::Tensor& at_target, const at::Tensor& at_source,
                            const at::Tensor& bias, const EdgeIndex& edges, Keep keep);

// `gradient` times gelu'(pre), in place. Its sum over rows, the gradient of the bias, is added to
// `bias_gradient` (C) wide. Gives gelu(pre), which the weight gradient needs, if that is `wanted`.
at::Tensor gelu_backward_(const at::Tensor& gradient, const at::Tensor& pre,
                          const at::Tensor& bias_gradient, bool wanted = true);

// The same of the gradient d weight of x, where pre = x before its GELU; weight (of d, of pre).
struct ProductGeluGradient {
  at::Tensor gradient, activated;
};
ProductGeluGradient product_gelu_backward(const at::Tensor& d, const at::Tensor& weight,
                                          const at::Tensor& pre, const at::Tensor& bias_gradient,
                                          bool wanted = true);

// sum_edges() by the kernel made for it.
at::Tensor sum_edge_rows(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets);

// sum += the sum of rows, (C) wide.
void add_column_sums(const at::Tensor& sum, const at::Tensor& rows);

struct NormParameters {
  at::Tensor weight, bias;  // (C) wide
  double eps = 1e-5;
};

// norm(z) * weight + bias + residual (undefined: none); with edges also its sum at their targets,
// and the rows themselves only if they are wanted.
struct NormResult {
  at::Tensor rows, sums;
  at::Tensor statistics;  // (rows, 2) mean and 1 / deviation
};
NormResult norm_rows(const at::Tensor& z, const at::Tensor& residual, const NormParameters& norm,
                     const EdgeIndex* sum_over, bool rows_wanted = true);

// x + addend, rounded, and its norm.
struct SumAndNorm {
  at::Tensor sum, rows, statistics;
};
SumAndNorm norm_sum(const at::Tensor& x, const at::Tensor& addend, const NormParameters& norm);

// Backward of norm_rows(): d_rows or d_sums may be undefined, not both. `d_past`, what comes to z
// past the norm, is added to d_z (not with edges). Adds to gradients (C) wide: of weight and bias,
// and the sum of d_z over rows, that of the bias before.
struct NormSums {
  at::Tensor weight, bias, z;
};
struct NormGradient {
  at::Tensor d_residual;  // d_rows plus the gradient of the target's sum, unless not wanted
  at::Tensor d_z;
};
NormGradient norm_backward(const at::Tensor& d_rows, const at::Tensor& d_sums, const at::Tensor& z,
                           const at::Tensor& statistics, const NormParameters& norm,
                           const EdgeIndex* sum_over, const NormSums& sums,
                           bool residual_wanted = true, const at::Tensor& d_past = {});

// sum += d^T x with sums in the type of `sum` (of d, of x), whose rows may be apart.
void add_weight_gradient(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x);

}  // namespace aifs::model
