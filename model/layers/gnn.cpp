// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

#include <algorithm>

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
      recompute_embeddings_(options.recompute_embeddings),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      emb_nodes_src_(scope / "emb_nodes_src", options.mlp(data_width, options.channels)),
      emb_nodes_dst_(scope / "emb_nodes_dst", options.mlp(hidden_width, options.channels)),
      edges_(std::make_unique<LocalEdges>(edges.index)) {}

Encoded GnnEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                            int64_t copies) const {
  const at::Tensor e =
      repeat_rows(embed(recompute_embeddings_, emb_edges_, edge_features_.forward()), copies);
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
      recompute_embeddings_(options.recompute_embeddings),
      recompute_messages_(options.recompute_messages),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "proc" / 0 / "emb_edges",
                 options.mlp(edge_features_.width(), options.channels)),
      edges_(std::make_unique<LocalEdges>(edges.index)) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back(scope / "proc" / layer, options);
  }
}

at::Tensor GnnProcessor::forward(const at::Tensor& x, int64_t copies) const {
  at::Tensor nodes = x;
  at::Tensor e =
      repeat_rows(embed(recompute_embeddings_, emb_edges_, edge_features_.forward()), copies);
  for (const GraphConvBlock& block : blocks_) {
    const NodeAndEdgeState sent = send(recompute_messages_, block, nodes,
                                       edges_->sources(nodes, copies), e, edges_->index(copies));
    nodes = update(recompute_, block, nodes, sent.nodes);
    e = sent.edges;
  }
  return nodes;
}

GnnDecoder::GnnDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                       const GraphConvOptions& options, const EdgeTensors& edges,
                       int64_t num_edge_trainable, int64_t out_width)
    : recompute_(options.recompute),
      recompute_embeddings_(options.recompute_embeddings),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "emb_edges", options.mlp(edge_features_.width(), options.channels)),
      block_(std::make_unique<GraphConvBlock>(scope / "proc", options)),
      edges_(std::make_unique<LocalEdges>(edges.index)) {
  MlpOptions extractor = options.mlp(options.channels, out_width);
  extractor.layer_norm = false;
  extractor_ = Mlp(scope / "node_data_extractor", extractor);
  if (options.chunks == 1) return;
  const EdgeIndex& all = *edges_->index(1);
  const at::Tensor begin = all.target_begin.cpu();
  const int32_t* first_edge = begin.const_data_ptr<int32_t>();
  const int64_t each = (all.num_targets + options.chunks - 1) / options.chunks;
  for (int64_t first = 0; first < all.num_targets; first += each) {
    const int64_t count = std::min(each, all.num_targets - first);
    const int64_t edge = first_edge[first], num_edges = first_edge[first + count] - edge;
    const auto part =
        EdgeIndex::create(all.source.narrow(0, edge, num_edges),
                          all.target.narrow(0, edge, num_edges) - first, all.num_sources, count);
    chunks_.push_back({count, num_edges, part->to(all.source.device())});
  }
}

at::Tensor GnnDecoder::forward_chunks(const at::Tensor& latent, const at::Tensor& data,
                                      int64_t copies) const {
  std::vector<int64_t> target_counts, edge_counts;
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (const Chunk& chunk : chunks_) {
      target_counts.push_back(chunk.num_targets);
      if (copy == 0) edge_counts.push_back(chunk.num_edges);
    }
  }
  const std::vector<at::Tensor> targets = data.split_with_sizes(target_counts);
  const std::vector<at::Tensor> features = edge_features_.forward().split_with_sizes(edge_counts);
  const std::vector<at::Tensor> sources = edges_->sources(latent, copies).chunk(copies);
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < targets.size(); ++i) {
    const EdgeIndexPtr edges = chunks_[i % chunks_.size()].edges;
    const auto part = [this, edges](const std::vector<at::Tensor>& in) {
      const at::Tensor& target = in[0];
      const NodeAndEdgeState sent =
          block_->messages(target, in[1], emb_edges_.forward(in[2]), edges);
      return std::vector{extractor_.forward(block_->update_nodes(target, sent.nodes))};
    };
    results.push_back(recompute(
        part, {targets[i], sources[i / chunks_.size()], features[i % chunks_.size()]})[0]);
  }
  return at::cat(results);
}

at::Tensor GnnDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                               int64_t copies) const {
  if (!chunks_.empty()) return forward_chunks(latent, data, copies);
  const at::Tensor e =
      repeat_rows(embed(recompute_embeddings_, emb_edges_, edge_features_.forward()), copies);
  const NodeAndEdgeState sent =
      send(recompute_, *block_, data, edges_->sources(latent, copies), e, edges_->index(copies));
  return embed(recompute_, extractor_, update(recompute_, *block_, data, sent.nodes));
}

}  // namespace aifs::model
