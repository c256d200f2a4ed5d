// SPDX-License-Identifier: Apache-2.0
// Operands and results of the products of tall_product.h.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// x (rows, depth), weight (width, depth) with rows `weight_stride` elements apart, both bfloat16
// and aligned to 16 bytes: x weight^T, (rows, width). In the backward pass the weight is
// (depth, width) and the product x weight.
//
// Of plain GELUs and of sums without a gather, the last `more_depth` columns of x may be those of
// another tensor; in the backward pass, what multiplies these lies beside the rest of the weight:
// both are (depth - more_depth, width).
struct TallProduct {
  int64_t rows = 0, width = 0, depth = 0;
  const void *x = nullptr, *weight = nullptr;
  int64_t weight_stride = 0;
  const void* more = nullptr;
  int64_t more_depth = 0;
};

// pre = product + bias (fp32) + addend (rows, width; or null), or + at_target[target[e]] +
// at_source[source[e]] where these are given; out = gelu(pre). Written unless null: `pre`, and
// `slope`, the derivative of the GELU in 8 bits (model/kernels/cuda/gelu_slope.h).
struct ProductGelu {
  const float* bias;
  const void* addend;
  const void *at_target, *at_source;
  Ends ends;
  void *pre, *out;
  uint8_t* slope;
};

// out = product + bias (fp32).
struct ProductBias {
  const float* bias;
  void* out;
};

// gradient = product * gelu'(pre), the latter from `slope` or, where that is null, from `pre`; then
// also out = gelu(pre) unless null. The column sum of the gradient is added to `column_sum` (fp32,
// width). `scratch` as for column sums of `width`.
struct ProductGeluBackward {
  const void* pre;
  const uint8_t* slope;
  void *gradient, *out;
  float *column_sum, *scratch;
};

// out = product + addend (rows, width) + at_target[target[e]]; either may be null, both of products
// more than 512 deep alone.
struct ProductSum {
  const void *addend, *at_target;
  const int32_t* target;
  void* out;
};

}  // namespace aifs::model::cuda
