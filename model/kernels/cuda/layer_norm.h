// SPDX-License-Identifier: Apache-2.0
// LayerNorm of rows with the residual sum before it (transformers), or with the one and the sum at
// the targets of edges that follow it in message passing, in one pass over the rows; and the
// backward pass of all of them. Statistics,
// weight, bias and sums in fp32.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// out = norm(z) * weight + bias + residual (unless null); statistics (rows, 2) fp32: mean and
// 1 / sqrt(variance + eps). With an addend (not null) z + addend, written to `z_sum`, is meant by
// z; an addend and a residual do not go together (std::runtime_error): rows that are added have one
// place in a pass. With groups (of successive rows), sums[i] is the sum of their out, and `out`
// itself may be null.
struct NormForward {
  const void *z, *addend, *residual;
  const float *weight, *bias;
  float eps;
  Groups groups;  // begin null: none
  void *out, *sums, *z_sum;
  float* statistics;
};
void layer_norm_forward(const RowShape& shape, const NormForward& f, cudaStream_t stream);

// From the gradients of out (unless null) and of sums (unless null; row e gets that of group
// target[e]): g, their sum, written to `d_residual` unless null, and the gradient d_z, with
// `d_past` added to it (unless null; not with d_sums): what comes to z past the norm. The column
// sums of g * norm(z), g and d_z (fp32, width each) are added to: the gradients of weight and bias,
// and of the bias of the linear before.
struct NormBackward {
  const void *d_out, *d_sums, *d_past;
  const int32_t* target;
  const void* z;
  const float *weight, *statistics;
  void *d_residual, *d_z;
  float *weight_sum, *bias_sum, *z_sum;
  float* scratch;  // column_sum_scratch(3 * width) floats
};
void layer_norm_backward(const RowShape& shape, const NormBackward& b, cudaStream_t stream);

}  // namespace aifs::model::cuda
