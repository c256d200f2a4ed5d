// SPDX-License-Identifier: Apache-2.0
// Products of many rows with a small weight, in bfloat16 with sums in fp32, whose results go
// through a GELU (or, backward, through its derivative) before they reach memory. For Hopper cards
// alone: wgmma and the bulk copy engine.
#pragma once

#include "model/kernels/cuda/product_operands.h"

namespace aifs::model::cuda {

// True if the current device and these sizes will do. Products more than 512 deep are rounded to
// bfloat16 before anything else happens to them.
bool tall_product_supported(int64_t width, int64_t depth);
// Answers for columns of two tensors, of depth / 2 each.
bool tall_product_of_pair_supported(int64_t width, int64_t depth);
void product_gelu(const TallProduct& product, const ProductGelu& g, cudaStream_t stream);

// Products at most 512 deep alone.
bool tall_product_bias_supported(int64_t width, int64_t depth);
void product_bias(const TallProduct& product, const ProductBias& l, cudaStream_t stream);

void product_gelu_backward(const TallProduct& product, const ProductGeluBackward& b,
                           cudaStream_t stream);
void product_sum(const TallProduct& product, const ProductSum& s, cudaStream_t stream);

}  // namespace aifs::model::cuda
