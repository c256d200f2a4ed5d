// SPDX-License-Identifier: Apache-2.0
// Attention over the edges of a graph: every target attends to the sources of the edges that end at
// it, with a softmax over them for each head. Differentiable, deterministic: every row is summed by
// one thread in edge order, nothing of width (edges x channels) is ever stored.
//
// The trap: Anemoi adds W e + b of the edge features e to key and value of every edge, which would
// be an (M, H d) tensor per layer. Here the query is projected onto the edge features instead
// (`query_on_edges` = W_h^T q_h) and the caller applies W to the weighted sum of the features:
//   score(i <- j, h) = scale (q_ih . k_jh + query_on_edges_ih . e_ij)
//   nodes_ih = sum alpha v_jh,   edges_ih = sum alpha e_ij
// Same numbers up to rounding, and e is narrow. A column of ones in e carries the bias.
#pragma once

#include "model/kernels/attention_types.h"
#include "model/kernels/segment.h"

namespace aifs::model {

// 16-bit inputs are widened: scores, weights and sums are fp32, the result has the inputs' type.
AttentionSums graph_attention(const AttentionInputs& inputs, int64_t num_heads,
                              const EdgeIndexPtr& edges);

// Computes this by gathers and index sums of the library: any device, (M, H d) intermediates.
AttentionSums graph_attention_plain(const AttentionInputs& inputs, int64_t num_heads,
                                    const EdgeIndexPtr& edges);

}  // namespace aifs::model
