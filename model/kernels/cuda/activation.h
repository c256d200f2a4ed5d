// SPDX-License-Identifier: Apache-2.0
// GELU on rows, with what stands before it in the first layer of an edge MLP, and its backward
// pass; sums of columns. Rows of any width for which fits_in_slices().
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// out = gelu(pre), all of the type of the rows.
void gelu_rows(const RowShape& shape, const void* pre, void* out, cudaStream_t stream);

// pre[e] += at_target[target[e]] + at_source[source[e]] + bias (fp32, `width`), then out =
// gelu(pre).
struct EdgeActivation {
  const void *at_target, *at_source;
  const float* bias;
  Ends ends;
  void *pre, *out;
};
void add_ends_and_gelu(const RowShape& shape, const EdgeActivation& a, cudaStream_t stream);

// gradient = gradient * gelu'(pre) in place; out = gelu(pre), unless null; the column sum of the
// result is added to `column_sum` (fp32, width). `scratch` holds column_sum_scratch(width) floats.
struct GeluBackward {
  const void* pre;
  void *gradient, *out;
  float *column_sum, *scratch;
};
void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream);

// Adds the column sums of the rows to `sum` (fp32, width); `scratch` as above.
void column_sums(const RowShape& shape, const void* rows, float* sum, float* scratch,
                 cudaStream_t stream);

}  // namespace aifs::model::cuda
