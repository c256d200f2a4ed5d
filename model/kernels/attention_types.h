// SPDX-License-Identifier: Apache-2.0
// What model/kernels/graph_attention.h and its GPU half take and return; the letters are those of
// the former.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>

namespace aifs::model {

struct AttentionInputs {
  at::Tensor query;           // (num_targets, H d)
  at::Tensor query_on_edges;  // (num_targets, H D)
  at::Tensor key, value;      // (num_sources, H d)
  at::Tensor edge_features;   // (M, D)
  double scale = 1.0;         // 1 / sqrt(d) as a rule
};

struct AttentionSums {
  at::Tensor nodes;  // (num_targets, H d); zero where no edge ends
  at::Tensor edges;  // (num_targets, H D)
};

// Returns `gradient`, contiguous; zeros like `like` where no gradient came.
inline at::Tensor gradient_or_zeros(const at::Tensor& gradient, const at::Tensor& like) {
  return gradient.defined() ? gradient.contiguous() : at::zeros_like(like);
}

}  // namespace aifs::model
