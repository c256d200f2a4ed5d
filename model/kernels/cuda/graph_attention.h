// SPDX-License-Identifier: Apache-2.0
// Attention over the edges of a graph as model/kernels/graph_attention.h defines it, in one pass
// over the edges of each target with a running softmax; and its backward pass, by target and by
// source. No atomics: the same bits every time. Scores, weights and sums in fp32.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

struct AttentionShape {
  int64_t targets = 0, sources = 0, edges = 0;
  int heads = 1, width = 0, edge_width = 0;  // of one head, of the edge features
  ElementType type = ElementType::kFloat32;
  float scale = 1.0f;  // of scores
};

// True if a head of this width is whole vectors of 16 bytes, a power of two of them and at most 32,
// and edge features are few enough for it.
bool attention_supported(const AttentionShape& shape);

// Rows of (heads * width) or (heads * edge_width), all 16-byte aligned.
struct AttentionForward {
  const void *query, *query_on_edges, *key, *value, *features;
  const int32_t *target_begin, *source;
  void *nodes, *edges;
  float* log_sum;  // (targets, heads) logarithm of the sum of exponentials
};
void attention_forward(const AttentionShape& shape, const AttentionForward& f, cudaStream_t stream);

struct AttentionBackward {
  AttentionForward forward;  // with its results
  const int32_t *target, *source_begin, *source_edges;
  const void *d_nodes, *d_edges;
  void *d_query, *d_query_on_edges, *d_key, *d_value, *d_features;
  float* weights;  // scratch, (edges, heads, 2)
};
void attention_backward(const AttentionShape& shape, const AttentionBackward& b,
                        cudaStream_t stream);

}  // namespace aifs::model::cuda
