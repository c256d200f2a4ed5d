// SPDX-License-Identifier: Apache-2.0
// Attention in a window, |i - j| <= window, of as many queries as keys, in bfloat16 with sums in
// fp32, and its gradients, with the same bits every time. For Hopper cards alone: wgmma and the
// bulk copy engine.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

// Rows (batches, rows, heads, 64) of bfloat16, heads next to each other; strides in elements are
// multiples of eight, data aligned to 16 bytes.
struct HeadRows {
  void* data = nullptr;
  int64_t row_stride = 0, batch_stride = 0;
};

struct WindowAttention {
  int64_t batches = 1, rows = 0, heads = 1, window = 0;
  HeadRows query, key, value, out;
  float* log_sums = nullptr;  // (batches, heads, padded_rows(rows)): log2 of sums of 2^score'
};
struct WindowAttentionBackward {
  HeadRows d_out, d_query, d_key, d_value;
  float* deltas = nullptr;  // scratch, like log_sums
};

// Rows of a head in vectors with a number for each.
constexpr int64_t padded_rows(int64_t rows) {
  return (rows + 3) / 4 * 4 + 128;
}

// True if the current device and heads of this width will do.
bool window_attention_supported(int64_t head_width);
// Writes `out` and `log_sums`.
void window_attention(const WindowAttention& attention, cudaStream_t stream);
void window_attention_backward(const WindowAttention& attention,
                               const WindowAttentionBackward& backward, cudaStream_t stream);

}  // namespace aifs::model::cuda
