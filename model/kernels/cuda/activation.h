// SPDX-License-Identifier: Apache-2.0
// GELU on rows, with what stands before it in the first layer of an edge MLP, and its backward
// pass; sums of columns. Rows of any width for which fits_in_slices().
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// pre = product and, where ends are given, + at_target[target[e]] + at_source[source[e]] + bias
// (fp32, `width`); out = gelu(pre). Written unless null: `pre`, and `slope`, the derivative of
// the GELU in 8 bits (model/kernels/cuda/gelu_slope.h). `product` may be `pre` or `out`.
struct RowActivation {
  const void* product;
  const void *at_target, *at_source;
  const float* bias;
  Ends ends;
  void *pre, *out;
  uint8_t* slope;
};
void activate_rows(const RowShape& shape, const RowActivation& a, cudaStream_t stream);

// gradient = gradient * gelu' in place, from `slope` or, where that is null, from `pre`; then also
// out = gelu(pre) unless null. The column sum of the result is added to `column_sum` (fp32, width).
// `scratch` holds column_sum_scratch(width) floats.
struct GeluBackward {
  const void* pre;
  const uint8_t* slope;
  void *gradient, *out;
  float *column_sum, *scratch;
};
void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream);

// Adds the column sums of the rows to `sum` (fp32, width); `scratch` as above.
void column_sums(const RowShape& shape, const void* rows, float* sum, float* scratch,
                 cudaStream_t stream);

}  // namespace aifs::model::cuda
