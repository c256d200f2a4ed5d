// SPDX-License-Identifier: Apache-2.0
// Sums over the edges of a node and copies of node rows to edges, the two halves of message passing
// that are not matrix products. Differentiable, deterministic: no atomics, every row is summed by
// one thread in edge order, in fp32 at least. Any floating type, on the CPU and on a GPU.
#pragma once

#include <memory>

#include "model/kernels/edge_index.h"

namespace aifs::model {

using EdgeIndexPtr = std::shared_ptr<const EdgeIndex>;

// Sum of edge rows (M, C) at their targets: (num_targets, C); zero where no edge ends.
// Backward: each edge gets its target's row.
at::Tensor sum_at_targets(const at::Tensor& edge_rows, const EdgeIndexPtr& edges);

// The first linear of an edge MLP without concatenating its input [x_target | x_source | e]:
//   W_t x_target[target] + W_s x_source[source] + W_e e + bias
// weight (C_out, 3 C) holds W_t, W_s, W_e side by side. Products with node rows are done once per
// node and gathered; in backward, edge gradients are summed at the nodes before the products.
// x_target (num_targets, C), x_source (num_sources, C), e (M, C) -> (M, C_out). Computed in the
// type of e; weight and bias may have another.
at::Tensor edge_linear(const at::Tensor& x_target, const at::Tensor& x_source, const at::Tensor& e,
                       const at::Tensor& weight, const at::Tensor& bias, const EdgeIndexPtr& edges);

// Without autograd:
// out[i] = sum over edges ending at i (ending = true) or starting at i (false).
at::Tensor sum_edges(const at::Tensor& edge_rows, const EdgeIndex& edges, bool at_targets);
// rows[e] += at_target[target[e]] + at_source[source[e]], in place.
void add_node_rows_(const at::Tensor& rows, const at::Tensor& at_target,
                    const at::Tensor& at_source, const EdgeIndex& edges);

}  // namespace aifs::model
