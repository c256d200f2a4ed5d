// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

// An MLP on its own, run again in the backward pass unless nothing is; the caller outlives it.
at::Tensor embed(RecomputePolicy policy, const Mlp& mlp, const at::Tensor& x) {
  const bool again = policy == RecomputePolicy::kMlp || policy == RecomputePolicy::kBlock;
  const Piece piece = [&mlp](const TensorList& in) -> TensorList { return {mlp.forward(in[0])}; };
  return maybe_recomputed(again, piece, {x})[0];
}

}  // namespace

GnnEncoder::GnnEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t data_width, int64_t hidden_width)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      emb_nodes_src_(scope / "emb_nodes_src", options.mlp(data_width, options.channels)),
      emb_nodes_dst_(scope / "emb_nodes_dst", options.mlp(hidden_width, options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)),
      chunks_(options.chunks) {}

Encoded GnnEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                            int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    const at::Tensor e = repeat_rows(embed(options_.recompute, emb_edges_, in[2]), copies);
    const at::Tensor source = embed(options_.recompute, emb_nodes_src_, in[0]);
    const at::Tensor target = repeat_rows(emb_nodes_dst_.forward(in[1]), copies);
    const auto body = [this](const EdgeIndexPtr& edges) -> Piece {
      return [this, edges](const TensorList& part) -> TensorList {
        const NodeAndEdgeState sent = block_->messages(part[0], part[2], part[1], edges);
        return {block_->update_nodes(part[0], sent.nodes)};
      };
    };
    return {block_->update_sources(source),
            over_chunks(chunks_.of(edges_->index(copies)), body,
                        options_.recompute == RecomputePolicy::kBlock, target, e,
                        {edges_->sources(source, copies)})};
  };
  const TensorList result = maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                                             {x_data, x_hidden, edge_features_.forward()});
  return {result[0], result[1]};
}

GnnProcessor::GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
                           const GraphConvOptions& options, const EdgeTensors& edges,
                           int64_t num_edge_trainable, int64_t num_layers)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "proc" / 0 / "emb_edges",
                 options.mlp(edge_features_.width(), options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back((scope / "proc" / layer).sliced(), options);
  }
}

at::Tensor GnnProcessor::forward(const at::Tensor& x, int64_t copies,
                                 const at::Tensor& /*condition*/) const {
  const at::Tensor e =
      repeat_rows(embed(options_.recompute, emb_edges_, edge_features_.forward()), copies);
  std::vector<Step> steps;
  for (const GraphConvBlock& block : blocks_) {
    steps.push_back([this, &block, copies](const TensorList& in) -> TensorList {
      const NodeAndEdgeState sent =
          block.messages(in[0], edges_->sources(in[0], copies), in[1], edges_->index(copies));
      return {block.update_nodes(in[0], sent.nodes), sent.edges};
    });
  }
  return run_steps(steps, options_.recompute, options_.chunks, {x, e}, {})[0];
}

GnnDecoder::GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t out_width)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      edges_(std::make_unique<LocalEdges>(edges)),
      chunks_(options.chunks) {
  MlpOptions extractor = options.mlp(options.channels, out_width);
  extractor.layer_norm = false;
  extractor_ = Mlp(scope / "node_data_extractor", extractor);
}

at::Tensor GnnDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                               int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    const at::Tensor e = repeat_rows(embed(options_.recompute, emb_edges_, in[2]), copies);
    const auto body = [this](const EdgeIndexPtr& edges) -> Piece {
      return [this, edges](const TensorList& part) -> TensorList {
        const NodeAndEdgeState sent = block_->messages(part[0], part[2], part[1], edges);
        return {extractor_.forward(block_->update_nodes(part[0], sent.nodes))};
      };
    };
    return {over_chunks(chunks_.of(edges_->index(copies)), body,
                        options_.recompute == RecomputePolicy::kBlock, in[1], e,
                        {edges_->sources(in[0], copies)})};
  };
  return maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                          {latent, data, edge_features_.forward()})[0];
}

}  // namespace aifs::model
