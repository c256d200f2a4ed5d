// SPDX-License-Identifier: Apache-2.0
// The GPU half of model/kernels/row_ops.h and of sum_edges(): tensors checked and handed to the
// kernels on the current stream. In a program without CUDA nothing is supported and calls throw.
#pragma once

#include "model/kernels/edge_index.h"
#include "model/kernels/row_types.h"

namespace aifs::model::cuda_rows {

bool supports(at::ScalarType type, int64_t width);
bool gelu_supports(at::ScalarType type, int64_t width);

// The product gives way to what is kept, or to the result.
Activated gelu_rows_(const at::Tensor& pre, Keep keep);
Activated add_ends_and_gelu_(const at::Tensor& product, const at::Tensor& at_target,
                             const at::Tensor& at_source, const at::Tensor& bias,
                             const EdgeIndex& edges, Keep keep);
at::Tensor gelu_backward_(const at::Tensor& gradient, const Activated& x,
                          const at::Tensor& bias_gradient);
void add_column_sums(const at::Tensor& sum, const at::Tensor& rows);
SumAndNorm norm_sum(const at::Tensor& x, const at::Tensor& addend, const NormParameters& norm);
NormResult norm_rows(const at::Tensor& z, const at::Tensor& residual, const NormParameters& norm,
                     const EdgeIndex* sum_over, bool rows_wanted);
NormGradient norm_backward(const at::Tensor& d_rows, const at::Tensor& d_sums, const at::Tensor& z,
                           const at::Tensor& statistics, const NormParameters& norm,
                           const EdgeIndex* sum_over, const NormSums& sums, bool residual_wanted,
                           const at::Tensor& d_past);
at::Tensor sum_edges(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets);

bool product_bias_fits(const at::Tensor& x, const at::Tensor& weight);
at::Tensor product_bias(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
// True if one kernel can form x times a weight of `width` columns and sums `depth` long, and what
// comes with it.
bool product_fits(const at::Tensor& x, const at::Tensor& weight, int64_t width, int64_t depth);
bool pair_product_fits(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight);
// `more`: further columns of x, if the pair fits.
Activated product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Keep keep, const at::Tensor& addend, const at::Tensor& more = {});
Activated edge_product_gelu(const at::Tensor& e, const at::Tensor& weight,
                            const at::Tensor& at_target, const at::Tensor& at_source,
                            const at::Tensor& bias, const EdgeIndex& edges, Keep keep);
ProductGeluGradient product_gelu_backward(const at::Tensor& d, const at::Tensor& weight,
                                          const Activated& x, const at::Tensor& bias_gradient);
// linear_backward() as one kernel.
bool narrow_product_fits(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& x,
                         const at::Tensor& d_weight);
at::Tensor narrow_product_backward(const at::Tensor& d, const at::Tensor& weight,
                                   const at::Tensor& x, const at::Tensor& d_weight);
bool pair_sum_fits(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight);
at::Tensor pair_product_sum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& rows);
at::Tensor product_sum(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& rows,
                       const at::Tensor& at_target, const EdgeIndex* edges);

}  // namespace aifs::model::cuda_rows
