// SPDX-License-Identifier: Apache-2.0
// The backward pass of a linear map of few columns, as those that embed the features of edges: the
// gradient of its result is read once for that of the map's input and that of its weight. In
// bfloat16 with sums in fp32, for Hopper cards alone.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

inline constexpr int64_t kNarrowColumns = 16;

// d (rows, width), x (rows, kNarrowColumns), weight (width, kNarrowColumns) and d_x like x, all
// bfloat16, contiguous and aligned to 16 bytes. `scratch` as for column sums of
// width * weight_columns.
struct NarrowProduct {
  int64_t rows = 0, width = 0;
  int64_t weight_columns = 0;  // of the gradient of the weight, at most kNarrowColumns
  const void *d, *x, *weight;
  void* d_x;
  float *d_weight, *scratch;  // (width, weight_columns)
};

// True if the current device and this width will do.
bool narrow_product_supported(int64_t width);

// d_x = d weight, and d_weight += the first columns of d^T x.
void narrow_product_backward(const NarrowProduct& p, cudaStream_t stream);

}  // namespace aifs::model::cuda
