// SPDX-License-Identifier: Apache-2.0
// Attention in a window of 16-bit rows on a GPU, by an own kernel where it fits
// (window_attention.h) or else by the library's flash-attention, with gradients that have the same
// bits every time.
#pragma once

#include <ATen/core/Tensor.h>

namespace aifs::model {

// query (B, N_q, H, d), key and value (B, N_k, H, d) -> (B, N_q, H, d); a query sees the keys that
// are at most `window` away, positions counted so that the ends of both sequences meet. Sequences
// of different lengths are not cut into parts: the gradient of the query is summed from as many
// copies of it as there are multiprocessors for every head, and that is much memory for long ones.
at::Tensor flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           int64_t window);

}  // namespace aifs::model
