// SPDX-License-Identifier: Apache-2.0
// Attention in a window by an own kernel (Hopper cards, bfloat16, heads 64 wide), with gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// True if there is a kernel for query (B, N, H, 64), key and value like it: on such a card, with as
// many queries as keys. False in a program without CUDA.
bool window_attention_fits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// -> (B, N, H, 64); row i sees the rows at most `window` away. Scores are q . k / 8. The same bits
// every time, forward and backward. Rows may lie apart (of other columns between them); gradients
// do not. Throws Error unless window_attention_fits().
at::Tensor window_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            int64_t window);

}  // namespace aifs::model
