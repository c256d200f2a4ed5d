// SPDX-License-Identifier: Apache-2.0
#include "model/layers/graph_conv.h"

#include <ATen/ATen.h>

namespace aifs::model {

MlpOptions GraphConvOptions::mlp(int64_t in, int64_t out) const {
  return {.in = in,
          .hidden = hidden,
          .out = out,
          .extra_layers = extra_layers,
          .layer_norm = true,
          .implementation = implementation,
          .layer_norm_eps = layer_norm_eps,
          .kernels = kernels};
}

GraphConvBlock::GraphConvBlock(const ParameterScope& scope, const GraphConvOptions& options) {
  const int64_t c = options.channels;
  node_mlp_ = Mlp(scope / "node_mlp", options.mlp(2 * c, c));
  MlpOptions edge = options.mlp(3 * c, c);
  edge.hidden = c;
  edge_mlp_ = Mlp(scope / "conv" / "edge_mlp", edge);
}

NodeAndEdgeState GraphConvBlock::messages(const at::Tensor& x_target, const at::Tensor& x_source,
                                          const at::Tensor& e, const EdgeIndexPtr& edges) const {
  if (edge_mlp_.is_fused(e)) {
    const FusedMlpResult sent = edge_mlp_.fused(
        {.first = FirstProduct::kEdges, .edges = edges, .residual = true}, {x_target, x_source, e});
    return {sent.sums, sent.rows};
  }
  const at::Tensor m = edge_mlp_.forward_edges(x_target, x_source, e, edges) + e;
  return {sum_at_targets(m, edges), m};
}

at::Tensor GraphConvBlock::update_nodes(const at::Tensor& x, const at::Tensor& aggregate) const {
  if (node_mlp_.is_fused(x))
    return node_mlp_.fused({.first = FirstProduct::kPair, .residual = true}, {x, aggregate}).rows;
  return node_mlp_.forward_pair(x, aggregate) + x;
}

at::Tensor GraphConvBlock::update_sources(const at::Tensor& x) const {
  if (node_mlp_.is_fused(x))
    return node_mlp_.fused({.first = FirstProduct::kTwice, .residual = true}, {x}).rows;
  return node_mlp_.forward_twice(x) + x;
}

}  // namespace aifs::model
