// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

namespace aifs::model {

namespace {

// An MLP on its own, run again in the backward pass unless nothing is; the caller outlives it.
at::Tensor embed(RecomputePolicy policy, const Mlp& mlp, const at::Tensor& x) {
  const bool again = policy != RecomputePolicy::kNone && policy != RecomputePolicy::kFull;
  if (again && mlp.is_fused(x)) return mlp.forward(x, Keep::kNothing);
  const Piece piece = [&mlp](const TensorList& in) -> TensorList { return {mlp.forward(in[0])}; };
  return maybe_recomputed(again, piece, {x})[0];
}

// f(x), which works on each row alone; under kBlock range after range, each run again.
at::Tensor over_rows(const GraphConvOptions& options, const at::Tensor& x,
                     const std::function<at::Tensor(const at::Tensor&)>& f) {
  if (options.recompute != RecomputePolicy::kBlock) return f(x);
  const Piece piece = [f](const TensorList& in) -> TensorList { return {f(in[0])}; };
  TensorList parts;
  for (const at::Tensor& range : x.chunk(options.chunks))
    parts.push_back(maybe_recomputed(true, piece, {range})[0]);
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

// Describes what a mapper does to its edges before it sends messages: all are embedded first or,
// under kBlock, those of a range of targets when their turn has come.
struct EdgeEmbedding {
  const GraphConvOptions& options;
  const Mlp& mlp;
  bool late() const { return options.recompute == RecomputePolicy::kBlock; }
  at::Tensor early(const at::Tensor& features, int64_t copies) const {
    return repeat_rows(late() ? features : embed(options.recompute, mlp, features), copies);
  }
  at::Tensor of_range(const at::Tensor& rows) const { return late() ? mlp.forward(rows) : rows; }
};

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
    const EdgeEmbedding embedding{options_, emb_edges_};
    const at::Tensor e = embedding.early(in[2], copies);
    const bool by_range = options_.recompute == RecomputePolicy::kBlock;
    const at::Tensor source =
        by_range
            ? over_rows(options_, in[0],
                        [this](const at::Tensor& rows) { return emb_nodes_src_.forward(rows); })
            : embed(options_.recompute, emb_nodes_src_, in[0]);
    const at::Tensor target = repeat_rows(emb_nodes_dst_.forward(in[1]), copies);
    const std::vector<EdgeChunk>& chunks = chunks_.of(edges_->index(copies));
    const at::Tensor sources = edges_->sources(source, copies);
    if (chunks.size() == 1 && !by_range && sources.is_same(source)) {
      const NodeAndEdgeState sent = block_->messages(target, sources, e, chunks[0].index,
                                                     /*edges_wanted=*/false,
                                                     /*sources_again=*/true);
      return {block_->update_sources(sent.sources), block_->update_nodes(sent.targets, sent.nodes)};
    }
    const auto body = [this, embedding](const EdgeIndexPtr& edges) -> Piece {
      return [this, embedding, edges](const TensorList& part) -> TensorList {
        const NodeAndEdgeState sent =
            block_->messages(part[0], part[2], embedding.of_range(part[1]), edges,
                             /*edges_wanted=*/false);
        return {block_->update_nodes(sent.targets, sent.nodes)};
      };
    };
    return {over_rows(options_, source,
                      [this](const at::Tensor& rows) { return block_->update_sources(rows); }),
            over_chunks(chunks, body, by_range, target, e, {sources})};
  };
  const TensorList result =
      maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                       {x_data, x_hidden, edge_features_.forward(/*filled=*/true)});
  return {result[0], result[1]};
}

GnnProcessor::GnnProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
                           const GraphConvOptions& options, const EdgeTensors& edges,
                           int64_t num_edge_trainable, int64_t num_layers)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      emb_edges_(scope / "proc" / 0 / "emb_edges",
                 options.mlp(edge_features_.width(), options.channels)),
      edges_(std::make_unique<LocalEdges>(edges)),
      ranges_(options.edge_ranges),
      units_(scope) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back((scope / "proc" / layer).sliced().of_layer(layer), options);
    units_.end_layer();
  }
}

Processor::State GnnProcessor::start(const at::Tensor& x, int64_t copies,
                                     const at::Tensor& /*condition*/) const {
  const at::Tensor features = edge_features_.forward(/*filled=*/true);
  const std::vector<EdgeChunk>& ranges = ranges_.of(edges_->index(copies));
  if (ranges.size() == 1)
    return {x, repeat_rows(embed(options_.recompute, emb_edges_, features), copies)};
  State state{x};
  const Piece piece = [this](const TensorList& in) -> TensorList {
    return {emb_edges_.forward(in[0])};
  };
  for (const at::Tensor& some : split_edges(repeat_rows(features, copies), ranges))
    state.push_back(maybe_recomputed(true, piece, {some})[0]);
  return state;
}

Processor::State GnnProcessor::run(const State& state, int64_t copies) const {
  const std::vector<EdgeChunk>& ranges = ranges_.of(edges_->index(copies));
  std::vector<Step> steps;
  for (const GraphConvBlock& block : blocks_) {
    // Nobody reads the edges of the last layer; a part that runs again gives all of its state.
    const bool edges_wanted = &block != &blocks_.back() || runs_layers_again(options_.recompute);
    steps.push_back([this, &block, copies, &ranges,
                     edges_wanted](const TensorList& in) -> TensorList {
      if (ranges.size() == 1) {
        const auto halo = block.takes_halo(in[0]) ? edges_->halo() : nullptr;
        const EdgeIndexPtr& edges = ranges[0].index;
        const NodeAndEdgeState sent =
            halo
                ? block.messages(in[0], in[1], edges, halo, copies, edges_wanted)
                : block.messages(in[0], edges_->sources(in[0], copies), in[1], edges, edges_wanted);
        return {block.update_nodes(sent.targets, sent.nodes), sent.edges};
      }
      const at::Tensor shared = block.shared_sources(edges_->sources(in[0], copies));
      const TensorList targets = split_targets(in[0], ranges);
      TensorList nodes, next{at::Tensor()};
      for (size_t i = 0; i < ranges.size(); ++i) {
        const Piece piece = [&block,
                             edges = ranges[i].index](const TensorList& part) -> TensorList {
          const NodeAndEdgeState sent = block.messages_from(part[2], part[0], part[1], edges);
          return {block.update_nodes(sent.targets, sent.nodes), sent.edges};
        };
        const TensorList some = maybe_recomputed(true, piece, {targets[i], in[1 + i], shared},
                                                 {.width = 2, .ends_part = true});
        nodes.push_back(some[0]);
        next.push_back(some[1]);
      }
      next[0] = at::cat(nodes);
      return next;
    });
  }
  return units_.run(steps, {options_.recompute, options_.chunks, options_.offload}, state,
                    state.size());
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
    const EdgeEmbedding embedding{options_, emb_edges_};
    const at::Tensor e = embedding.early(in[2], copies);
    const auto body = [this, embedding](const EdgeIndexPtr& edges) -> Piece {
      return [this, embedding, edges](const TensorList& part) -> TensorList {
        const NodeAndEdgeState sent =
            block_->messages_from(part[2], part[0], embedding.of_range(part[1]), edges,
                                  /*edges_wanted=*/false);
        return {extractor_.forward_filled(block_->update_nodes(sent.targets, sent.nodes),
                                          kept_hidden(options_.recompute))};
      };
    };
    return {over_chunks(chunks_.of(edges_->index(copies)), body,
                        options_.recompute == RecomputePolicy::kBlock, in[1], e,
                        {block_->shared_sources(edges_->sources(in[0], copies))})};
  };
  return maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                          {latent, data, edge_features_.forward(/*filled=*/true)})[0];
}

}  // namespace aifs::model
