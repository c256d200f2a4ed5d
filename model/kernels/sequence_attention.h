// SPDX-License-Identifier: Apache-2.0
// Attention of rows to all rows of a sequence, or to those in a window around the same position
// (Anemoi's MultiHeadSelfAttention and MultiHeadCrossAttention). Never causal, no dropout.
//
// The trap: a window works on positions, |i - j| <= w. torch's attention counts both from the start
// of their sequences; flash-attention shifts them so that the ends meet (`aligned_at_end`), which
// differs where queries and keys are not equally many. A query that sees no key gives zero.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace aifs::model {

struct SequenceAttentionOptions {
  int64_t heads = 1;
  std::optional<int64_t> window = {};  // none: every key is seen
  bool aligned_at_end = false;         // positions of keys and queries are counted from their ends
  double softcap = 0.0;                // cap * tanh(score / cap); 0: none
  at::Tensor alibi_slopes = {};        // (H): minus slope * distance; undefined: none
};

// One sequence per copy: query (copies * N_q, H d), key and value (copies * N_k, H d) ->
// (copies * N_q, H d). Scores are q . k / sqrt(d). With a window, memory is that of a band, not of
// N_q x N_k.
//
// All rows of a copy must be here. This is the one place that has to change when the rows of a copy
// are spread over ranks: gather keys and values (or exchange heads for rows) before, take the own
// queries after.
at::Tensor sequence_attention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, int64_t copies,
                              const SequenceAttentionOptions& options);

// Slopes of ALiBi for so many heads, (H) f64.
at::Tensor alibi_slopes(int64_t heads);

// x (copies * N, H d) turned by its position in the copy: halves of each head as real and imaginary
// parts, angle position * 10000^(-2 k / d) (rotary embedding, not interleaved).
at::Tensor rotate_by_position(const at::Tensor& x, int64_t copies, int64_t heads);

}  // namespace aifs::model
