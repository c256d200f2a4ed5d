// SPDX-License-Identifier: Apache-2.0
// Attention of rows to all rows of a sequence, or to those in a window around the same position
// (Anemoi's MultiHeadSelfAttention and MultiHeadCrossAttention). Never causal, no dropout.
//
// The trap: a window works on positions, |i - j| <= w. torch's attention counts both from the start
// of their sequences; flash-attention shifts them so that the ends meet, by N_k - N_q, which
// differs where queries and keys are not equally many. A query that sees no key gives zero.
//
// Everything is here: rows of other ranks are the business of model/nodes/local_sequences.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>

namespace aifs::model {

struct SequenceAttentionOptions {
  int64_t heads = 1;
  std::optional<int64_t> window = {};  // none: every key is seen
  int64_t shift = 0;                   // position of the first query, counted from the first key
  double softcap = 0.0;                // cap * tanh(score / cap); 0: none
  at::Tensor alibi_slopes = {};        // (H): minus slope * distance; undefined: none
};

// Keys [begin, end) of `num_keys` among which are all that some of the queries [first, first +
// count) see; never empty.
struct KeyRange {
  int64_t begin = 0, end = 0;
};
KeyRange visible_keys(int64_t first, int64_t count, int64_t num_keys,
                      const SequenceAttentionOptions& options);

// So many queries, the last ones less, meet the keys they see together, where attention is not the
// library's.
inline int64_t block_of_queries(const SequenceAttentionOptions& options) {
  constexpr int64_t kSmallest = 128;
  return std::max(kSmallest, options.window.value_or(0));
}

// True if the library's flash-attention does it, of 16 bits on a GPU. It counts positions from the
// ends: not between parts of a divided sequence.
inline bool flash_does(const SequenceAttentionOptions& options, int64_t head_width,
                       int64_t num_queries, int64_t num_keys) {
  return head_width % 8 == 0 && head_width <= 256 && options.window && options.softcap <= 0.0 &&
         !options.alibi_slopes.defined() && options.shift == num_keys - num_queries;
}

// One sequence per copy: query (copies * N_q, H d), key and value (copies * N_k, H d) ->
// (copies * N_q, H d). Scores are q . k / sqrt(d). With a window, memory is that of a band, not of
// N_q x N_k. Without queries or heads the result is empty, but still a function of all three.
at::Tensor sequence_attention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, int64_t copies,
                              const SequenceAttentionOptions& options);

// Slopes of ALiBi for so many heads, (H) f64.
at::Tensor alibi_slopes(int64_t heads);

// x (copies * N, H d) turned by its position in the copy: halves of each head as real and imaginary
// parts, angle position * 10000^(-2 k / d) (rotary embedding, not interleaved). `positions` (N)
// i64; undefined: 0, 1, 2...
at::Tensor rotate_by_position(const at::Tensor& x, int64_t copies, int64_t heads,
                              const at::Tensor& positions = {});

}  // namespace aifs::model
