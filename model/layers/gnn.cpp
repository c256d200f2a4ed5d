// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

// The same rows for every copy of the graph.
at::Tensor repeat_rows(const at::Tensor& rows, int64_t copies) {
  return copies == 1 ? rows : rows.repeat({copies, 1});
}

}  // namespace

GnnEncoder::GnnEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t data_width, int64_t hidden_width)
    : edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      emb_nodes_src_(scope / "emb_nodes_src", options.mlp(data_width, options.channels)),
      emb_nodes_dst_(scope / "emb_nodes_dst", options.mlp(hidden_width, options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)) {}

Encoded GnnEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                            int64_t copies) const {
  const at::Tensor e = repeat_rows(emb_edges_.forward(edge_features_.forward()), copies);
  const at::Tensor source = emb_nodes_src_.forward(x_data);
  const at::Tensor target = repeat_rows(emb_nodes_dst_.forward(x_hidden), copies);
  const NodeAndEdgeState sent =
      block_->messages(target, edges_->sources(source, copies), e, edges_->index(copies));
  return {block_->update_sources(source), block_->update_nodes(target, sent.nodes)};
}

GnnProcessor::GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
                           const GraphConvOptions& options, const EdgeTensors& edges,
                           int64_t num_edge_trainable, int64_t num_layers)
    : edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "proc" / 0 / "emb_edges",
                 options.mlp(edge_features_.width(), options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back(scope / "proc" / layer, options);
  }
}

at::Tensor GnnProcessor::forward(const at::Tensor& x, int64_t copies) const {
  at::Tensor nodes = x;
  at::Tensor e = repeat_rows(emb_edges_.forward(edge_features_.forward()), copies);
  for (const GraphConvBlock& block : blocks_) {
    const NodeAndEdgeState sent =
        block.messages(nodes, edges_->sources(nodes, copies), e, edges_->index(copies));
    nodes = block.update_nodes(nodes, sent.nodes);
    e = sent.edges;
  }
  return nodes;
}

GnnDecoder::GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t out_width)
    : edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      edges_(std::make_unique<LocalEdges>(edges)) {
  MlpOptions extractor = options.mlp(options.channels, out_width);
  extractor.layer_norm = false;
  extractor_ = Mlp(scope / "node_data_extractor", extractor);
}

at::Tensor GnnDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                               int64_t copies) const {
  const at::Tensor e = repeat_rows(emb_edges_.forward(edge_features_.forward()), copies);
  const NodeAndEdgeState sent =
      block_->messages(data, edges_->sources(latent, copies), e, edges_->index(copies));
  return extractor_.forward(block_->update_nodes(data, sent.nodes));
}

}  // namespace aifs::model
