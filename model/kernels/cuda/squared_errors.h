// SPDX-License-Identifier: Apache-2.0
// Weighted squared errors, added up over the variables of each row, in one pass over the fields.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// A factor of the errors, with 0 as stride where it does not act.
struct ErrorFactor {
  const float* values = nullptr;
  int64_t time_stride = 0, node_stride = 0, variable_stride = 0;
};
inline constexpr int kMaxErrorFactors = 4;

// Fields (batch, times, members, nodes, variables), contiguous; factors are alike for all batches
// and members.
struct SquaredErrors {
  const float *prediction, *target;
  int64_t rows = 0;  // batch * times * members * nodes, less than 2^32
  uint32_t times = 1, members = 1, nodes = 1;
  int variables = 0;
  int num_factors = 0;
  ErrorFactor factors[kMaxErrorFactors];
  float scale = 1.0f;  // of the sums
};

// sums (rows) = scale * the sum over variables of (prediction - target)^2 times its factors.
void squared_errors(const SquaredErrors& s, float* sums, cudaStream_t stream);
// The gradient of the prediction, like it, from that of the sums.
void squared_errors_backward(const SquaredErrors& s, const float* d_sums, float* d_prediction,
                             cudaStream_t stream);

}  // namespace aifs::model::cuda
