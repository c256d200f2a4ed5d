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
          .activation = activation,
          .layer_norm_eps = layer_norm_eps,
          .kernels = kernels};
}

GraphConvBlock::GraphConvBlock(const ParameterScope& scope, const GraphConvOptions& options)
    : recompute_mlps_(options.recompute == RecomputePolicy::kMlp) {
  const int64_t c = options.channels;
  node_mlp_ = Mlp(scope / "node_mlp", options.mlp(2 * c, c));
  MlpOptions edge = options.mlp(3 * c, c);
  edge.hidden = c;
  edge_mlp_ = Mlp(scope / "conv" / "edge_mlp", edge);
}

NodeAndEdgeState GraphConvBlock::messages(const at::Tensor& x_target, const at::Tensor& x_source,
                                          const at::Tensor& e, const EdgeIndexPtr& edges) const {
  const Piece mlp = [this, edges](const TensorList& in) -> TensorList {
    if (edge_mlp_.is_fused(in[2])) {
      const FusedMlpResult sent =
          edge_mlp_.fused({.first = FirstProduct::kEdges, .edges = edges, .residual = true}, in);
      return {sent.sums, sent.rows};
    }
    const at::Tensor m = edge_mlp_.forward_edges(in[0], in[1], in[2], edges) + in[2];
    return {sum_at_targets(m, edges), m};
  };
  const TensorList sent = maybe_recomputed(recompute_mlps_, mlp, {x_target, x_source, e});
  return {sent[0], sent[1]};
}

at::Tensor GraphConvBlock::update_nodes(const at::Tensor& x, const at::Tensor& aggregate) const {
  const Piece mlp = [this](const TensorList& in) -> TensorList {
    if (node_mlp_.is_fused(in[0]))
      return {node_mlp_.fused({.first = FirstProduct::kPair, .residual = true}, in).rows};
    return {node_mlp_.forward_pair(in[0], in[1]) + in[0]};
  };
  return maybe_recomputed(recompute_mlps_, mlp, {x, aggregate})[0];
}

at::Tensor GraphConvBlock::update_sources(const at::Tensor& x) const {
  const Piece mlp = [this](const TensorList& in) -> TensorList {
    if (node_mlp_.is_fused(in[0]))
      return {node_mlp_.fused({.first = FirstProduct::kTwice, .residual = true}, in).rows};
    return {node_mlp_.forward_twice(in[0]) + in[0]};
  };
  return maybe_recomputed(recompute_mlps_, mlp, {x})[0];
}

}  // namespace aifs::model
