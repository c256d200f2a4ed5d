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

Keep kept_hidden(RecomputePolicy recompute) {
  const bool frugal =
      recompute == RecomputePolicy::kEmbedding || recompute == RecomputePolicy::kMlp;
  return frugal ? Keep::kPre : Keep::kSlope;
}

GraphConvBlock::GraphConvBlock(const ParameterScope& scope, const GraphConvOptions& options)
    : recompute_mlps_(options.recompute == RecomputePolicy::kMlp),
      hidden_(recompute_mlps_ ? Keep::kNothing : kept_hidden(options.recompute)) {
  const int64_t c = options.channels;
  node_mlp_ = Mlp(scope / "node_mlp", options.mlp(2 * c, c));
  MlpOptions edge = options.mlp(3 * c, c);
  edge.hidden = c;
  edge_mlp_ = Mlp(scope / "conv" / "edge_mlp", edge);
}

TensorList GraphConvBlock::run(const Mlp& mlp, FusedMlpPlan plan, const TensorList& rows,
                               const std::function<at::Tensor(const TensorList&)>& plain) const {
  plan.residual = true;
  plan.hidden = hidden_;
  if (mlp.is_fused(rows.back())) {
    const FusedMlpResult result = mlp.fused(plan, rows);
    return {result.rows, result.sums, result.target, result.source};
  }
  const EdgeIndexPtr edges = plan.edges;
  const Piece piece = [plain, edges](const TensorList& in) -> TensorList {
    const at::Tensor y = plain(in);
    if (!edges) return {y};
    return {y, sum_at_targets(y, edges)};
  };
  TensorList result = maybe_recomputed(recompute_mlps_, piece, rows);
  if (edges) result.insert(result.end(), {rows[0], rows[1]});
  return result;
}

NodeAndEdgeState GraphConvBlock::send(FusedMlpPlan plan, const TensorList& rows) const {
  plan.first = FirstProduct::kEdges;
  plan.hands_on_target = true;
  const TensorList sent =
      run(edge_mlp_, plan, rows, [this, edges = plan.edges](const TensorList& in) {
        return edge_mlp_.forward_edges(in[0], in[1], in[2], edges) + in[2];
      });
  return {sent[1], sent[0], sent[2], sent[3]};
}

NodeAndEdgeState GraphConvBlock::messages(const at::Tensor& x_target, const at::Tensor& x_source,
                                          const at::Tensor& e, const EdgeIndexPtr& edges,
                                          bool edges_wanted, bool sources_again) const {
  return send({.edges = edges, .rows_wanted = edges_wanted, .hands_on_source = sources_again},
              {x_target, x_source, e});
}

NodeAndEdgeState GraphConvBlock::messages(const at::Tensor& x, const at::Tensor& e,
                                          const EdgeIndexPtr& edges,
                                          const std::shared_ptr<parallel::OverlappedExchange>& halo,
                                          int64_t copies, bool edges_wanted) const {
  return send({.edges = edges, .rows_wanted = edges_wanted, .halo = halo, .copies = copies},
              {x, x, e});
}

NodeAndEdgeState GraphConvBlock::messages_from(const at::Tensor& shared, const at::Tensor& x_target,
                                               const at::Tensor& e, const EdgeIndexPtr& edges,
                                               bool edges_wanted) const {
  return send({.edges = edges, .rows_wanted = edges_wanted, .sources_multiplied = true},
              {x_target, shared, e});
}

at::Tensor GraphConvBlock::shared_sources(const at::Tensor& x_source) const {
  return edge_mlp_.is_fused(x_source) ? edge_mlp_.fused_sources(x_source) : x_source;
}

at::Tensor GraphConvBlock::update_nodes(const at::Tensor& x, const at::Tensor& aggregate) const {
  return run(
      node_mlp_, {.first = FirstProduct::kPair}, {x, aggregate},
      [this](const TensorList& in) { return node_mlp_.forward_pair(in[0], in[1]) + in[0]; })[0];
}

at::Tensor GraphConvBlock::update_sources(const at::Tensor& x) const {
  return run(node_mlp_, {.first = FirstProduct::kTwice}, {x},
             [this](const TensorList& in) { return node_mlp_.forward_twice(in[0]) + in[0]; })[0];
}

}  // namespace aifs::model
