// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

#include "model/recompute.h"

namespace aifs::model {

namespace {

// The same rows for every copy of the graph.
at::Tensor repeat_rows(const at::Tensor& rows, int64_t copies) {
  return copies == 1 ? rows : rows.repeat({copies, 1});
}

// The parts of a layer that are run again in the backward pass if asked for; all of them outlive
// it.

at::Tensor embed(bool again, const Mlp& mlp, const at::Tensor& x) {
  if (!again) return mlp.forward(x);
  return recompute([&mlp](const auto& in) { return std::vector{mlp.forward(in[0])}; }, {x})[0];
}

NodeAndEdgeState send(bool again, const GraphConvBlock& block, const at::Tensor& target,
                      const at::Tensor& source, const at::Tensor& e, const EdgeIndexPtr& edges) {
  if (!again) return block.messages(target, source, e, edges);
  const auto part = [&block, edges](const auto& in) {
    const NodeAndEdgeState sent = block.messages(in[0], in[1], in[2], edges);
    return std::vector{sent.nodes, sent.edges};
  };
  const std::vector<at::Tensor> sent = recompute(part, {target, source, e});
  return {sent[0], sent[1]};
}

at::Tensor update(bool again, const GraphConvBlock& block, const at::Tensor& x,
                  const at::Tensor& aggregate) {
  if (!again) return block.update_nodes(x, aggregate);
  return recompute(
      [&block](const auto& in) { return std::vector{block.update_nodes(in[0], in[1])}; },
      {x, aggregate})[0];
}

at::Tensor update_sources(bool again, const GraphConvBlock& block, const at::Tensor& x) {
  if (!again) return block.update_sources(x);
  return recompute([&block](const auto& in) { return std::vector{block.update_sources(in[0])}; },
                   {x})[0];
}

}  // namespace

GnnEncoder::GnnEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t data_width, int64_t hidden_width)
    : recompute_(options.recompute),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      emb_nodes_src_(scope / "emb_nodes_src", options.mlp(data_width, options.channels)),
      emb_nodes_dst_(scope / "emb_nodes_dst", options.mlp(hidden_width, options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)) {}

Encoded GnnEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                            int64_t copies) const {
  const at::Tensor e = repeat_rows(embed(recompute_, emb_edges_, edge_features_.forward()), copies);
  const at::Tensor source = embed(recompute_, emb_nodes_src_, x_data);
  const at::Tensor target = repeat_rows(emb_nodes_dst_.forward(x_hidden), copies);
  const NodeAndEdgeState sent =
      send(recompute_, *block_, target, edges_->sources(source, copies), e, edges_->index(copies));
  return {update_sources(recompute_, *block_, source),
          update(recompute_, *block_, target, sent.nodes)};
}

GnnProcessor::GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
                           const GraphConvOptions& options, const EdgeTensors& edges,
                           int64_t num_edge_trainable, int64_t num_layers)
    : recompute_(options.recompute),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "proc" / 0 / "emb_edges",
                 options.mlp(edge_features_.width(), options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back(scope / "proc" / layer, options);
  }
}

at::Tensor GnnProcessor::forward(const at::Tensor& x, int64_t copies) const {
  at::Tensor nodes = x;
  at::Tensor e = repeat_rows(embed(recompute_, emb_edges_, edge_features_.forward()), copies);
  for (const GraphConvBlock& block : blocks_) {
    const NodeAndEdgeState sent =
        send(recompute_, block, nodes, edges_->sources(nodes, copies), e, edges_->index(copies));
    nodes = update(recompute_, block, nodes, sent.nodes);
    e = sent.edges;
  }
  return nodes;
}

GnnDecoder::GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t out_width)
    : recompute_(options.recompute),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      edges_(std::make_unique<LocalEdges>(edges)) {
  MlpOptions extractor = options.mlp(options.channels, out_width);
  extractor.layer_norm = false;
  extractor_ = Mlp(scope / "node_data_extractor", extractor);
}

at::Tensor GnnDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                               int64_t copies) const {
  const at::Tensor e = repeat_rows(embed(recompute_, emb_edges_, edge_features_.forward()), copies);
  const NodeAndEdgeState sent =
      send(recompute_, *block_, data, edges_->sources(latent, copies), e, edges_->index(copies));
  return embed(recompute_, extractor_, update(recompute_, *block_, data, sent.nodes));
}

}  // namespace aifs::model
