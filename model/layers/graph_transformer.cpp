// SPDX-License-Identifier: Apache-2.0
#include "model/layers/graph_transformer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "model/layers/joint_linear.h"
#include "model/layers/residual_mlp.h"

namespace aifs::model {

namespace {

// Maps of each head (H, d, D) as one of all heads (H d, H D), with zeros off the diagonal: a single
// product of long rows, where one per head would be many of narrow columns.
at::Tensor block_diagonal(const at::Tensor& maps) {
  const int64_t heads = maps.size(0);
  const at::Tensor diagonal = at::eye(heads, maps.options()).view({heads, 1, heads, 1});
  return (maps.unsqueeze(2) * diagonal).reshape({heads * maps.size(1), heads * maps.size(2)});
}

}  // namespace

GraphTransformerBlock::GraphTransformerBlock(const ParameterScope& scope,
                                             const GraphTransformerOptions& options,
                                             int64_t edge_width, Use use)
    : options_(options), ranks_(scope.ranks()), heads_(ranks_.own(options.heads).size) {
  const int64_t c = options.channels, a = options.attention_width();
  AIFS_CHECK(a % options.heads == 0, a, " attention channels for ", options.heads, " heads");
  const int64_t width = a / options.heads;
  const auto to_heads = [&](const std::string& name, int64_t in) {
    return Linear(scope / name, in, a, true, LinearStart::kUniform, {.out = true, .unit = width});
  };
  lin_key_ = to_heads("lin_key", c);
  lin_query_ = to_heads("lin_query", c);
  lin_value_ = to_heads("lin_value", c);
  lin_self_ = to_heads("lin_self", c);
  lin_edge_ = to_heads("lin_edge", edge_width);
  projection_ =
      Linear(scope / "projection", a, c, true, LinearStart::kUniform, {.in = true, .unit = width});
  if (options.qk_norm) {
    const LayerNormOptions per_head{
        .eps = options.qk_norm_eps.value_or(options.norm.eps), .bias = false, .of_slices = true};
    q_norm_ = LayerNorm(scope / "q_norm", width, per_head);
    k_norm_ = LayerNorm(scope / "k_norm", width, per_head);
  }
  norm_ = LayerNorm(scope / "layer_norm_attention", c, options.norm);
  if (use == Use::kMapper) {
    for (const char* leaf : {".weight", ".bias"}) {
      scope.add_alias(concat("layer_norm_attention_dest", leaf),
                      concat("layer_norm_attention", leaf));
    }
    norm_sources_ = LayerNorm(scope / "layer_norm_attention_src", c, options.norm);
  }
  norm_mlp_ = LayerNorm(scope / "layer_norm_mlp_dst", c, options.norm);
  mlp_ = Mlp(scope / "node_dst_mlp", {.in = c,
                                      .hidden = options.hidden,
                                      .out = c,
                                      .extra_layers = 0,
                                      .layer_norm = false,
                                      .implementation = options.implementation,
                                      .activation = options.activation});
  if (options.edge_pre_mlp)
    edge_pre_mlp_ = Linear(scope / "edge_pre_mlp" / 0, edge_width, edge_width);
}

at::Tensor GraphTransformerBlock::edge_features(const at::Tensor& e) const {
  const at::Tensor features =
      options_.edge_pre_mlp ? activate(edge_pre_mlp_.forward(e), options_.activation) : e;
  return ranks_.copied(at::cat({features, at::ones({e.size(0), 1}, e.options())}, 1));
}

at::Tensor GraphTransformerBlock::per_head_norm(const LayerNorm& norm,
                                                const at::Tensor& rows) const {
  if (!options_.qk_norm) return rows;
  const int64_t width = rows.size(1) / heads_;
  return norm.forward(rows.view({rows.size(0), heads_, width})).view(rows.sizes());
}

GraphTransformerBlock::Sources GraphTransformerBlock::sources(const at::Tensor& u) const {
  const std::vector<at::Tensor> rows = joint_linear(u, {&lin_key_, &lin_value_});
  return {per_head_norm(k_norm_, rows[0]), rows[1]};
}

GraphTransformerBlock::Targets GraphTransformerBlock::targets(const at::Tensor& u) const {
  const std::vector<at::Tensor> rows = joint_linear(u, {&lin_query_, &lin_self_});
  return {per_head_norm(q_norm_, rows[0]), rows[1]};
}

std::pair<GraphTransformerBlock::Sources, GraphTransformerBlock::Targets>
GraphTransformerBlock::both(const at::Tensor& u) const {
  const std::vector<at::Tensor> rows =
      joint_linear(u, {&lin_key_, &lin_value_, &lin_query_, &lin_self_});
  return {{per_head_norm(k_norm_, rows[0]), rows[1]}, {per_head_norm(q_norm_, rows[2]), rows[3]}};
}

at::Tensor GraphTransformerBlock::attend(const Targets& targets, const Sources& sources,
                                         const at::Tensor& edge_features,
                                         const EdgeIndexPtr& edges) const {
  const int64_t width = options_.attention_width() / options_.heads;
  // The linear map of the edge features, bias as its last column, per head: (H, d, D + 1).
  const at::Tensor map = block_diagonal(at::cat({lin_edge_.weight, lin_edge_.bias.unsqueeze(1)}, 1)
                                            .view({heads_, width, lin_edge_.weight.size(1) + 1}))
                             .to(targets.query.scalar_type());
  const AttentionSums sums =
      graph_attention({targets.query, at::mm(targets.query, map), sources.key, sources.value,
                       edge_features, 1.0 / std::sqrt(static_cast<double>(width))},
                      heads_, edges);
  return (sums.nodes + targets.self).addmm_(sums.edges, map.t());
}

at::Tensor GraphTransformerBlock::forward(const at::Tensor& x, const Targets& targets,
                                          const Sources& sources, const at::Tensor& edge_features,
                                          const EdgeIndexPtr& edges, const at::Tensor& condition,
                                          bool ends_part) const {
  return residual_mlp(x, projection_.forward(attend(targets, sources, edge_features, edges)),
                      condition,
                      {.norm = norm_mlp_,
                       .mlp = mlp_,
                       .recomputed = options_.recompute == RecomputePolicy::kMlp,
                       .ends_part = ends_part});
}

// ----------------------------------------------------------------------------------- processor ---

GraphTransformerProcessor::GraphTransformerProcessor(const ParameterScope& scope,
                                                     const ParameterScope& edge_scope,
                                                     const GraphTransformerOptions& options,
                                                     const EdgeTensors& edges,
                                                     int64_t num_edge_trainable, int64_t num_layers)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      edges_(std::make_unique<LocalEdges>(edges)),
      units_(scope) {
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    blocks_.emplace_back((scope / "proc" / layer).sliced().of_layer(layer), options,
                         edge_features_.width(), GraphTransformerBlock::Use::kProcessor);
    units_.end_layer();
  }
}

Processor::State GraphTransformerProcessor::start(const at::Tensor& x, int64_t /*copies*/,
                                                  const at::Tensor& condition) const {
  State state{x, edge_features_.forward()};
  if (condition.defined()) state.push_back(condition);
  return state;
}

Processor::State GraphTransformerProcessor::run(const State& state, int64_t copies) const {
  const auto run_block = [this, copies](size_t layer) -> Step {
    return [this, copies, layer](const TensorList& in) -> TensorList {
      const GraphTransformerBlock& block = blocks_[layer];
      const at::Tensor condition = in.size() > 2 ? in[2] : at::Tensor();
      const auto [start, u] = block.norm_targets(in[0], condition);
      const at::Tensor e = repeat_rows(block.edge_features(in[1]), copies);
      const at::Tensor from = edges_->sources(u, copies);
      const auto [sources, targets] =
          from.is_same(u) ? block.both(u) : std::pair(block.sources(from), block.targets(u));
      return {block.forward(start, targets, sources, e, edges_->index(copies), condition,
                            options_.recompute == RecomputePolicy::kBlock)};
    };
  };
  std::vector<Step> steps;
  for (size_t layer = 0; layer < blocks_.size(); ++layer)
    steps.push_back(run_block(layer));
  return units_.run(steps, {options_.recompute, options_.chunks, options_.offload}, state, 1);
}

// ------------------------------------------------------------------------------------- mappers ---

GraphTransformerEncoder::GraphTransformerEncoder(const ParameterScope& scope,
                                                 const ParameterScope& edge_scope,
                                                 const GraphTransformerOptions& options,
                                                 const EdgeTensors& edges,
                                                 int64_t num_edge_trainable, int64_t data_width,
                                                 int64_t hidden_width)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      block_(std::make_unique<GraphTransformerBlock>(
          scope / "proc", options, edge_features_.width(), GraphTransformerBlock::Use::kMapper)),
      emb_nodes_dst_(scope / "emb_nodes_dst", hidden_width, options.channels),
      emb_nodes_src_(scope / "emb_nodes_src", data_width, options.channels),
      edges_(std::make_unique<LocalEdges>(edges)),
      chunks_(options.chunks) {}

Encoded GraphTransformerEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                                         int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    const at::Tensor u = block_->norm_sources(emb_nodes_src_.forward(in[0]));
    const auto sources = block_->sources(edges_->sources(u, copies));
    const at::Tensor targets = repeat_rows(emb_nodes_dst_.forward(in[1]), copies);
    const at::Tensor e = repeat_rows(block_->edge_features(in[2]), copies);
    const auto chunk_body = [this](const EdgeIndexPtr& edges) -> Piece {
      return [this, edges](const TensorList& part) -> TensorList {
        const auto [start, u_targets] = block_->norm_targets(part[0], {});
        return {block_->forward(start, block_->targets(u_targets), {part[2], part[3]}, part[1],
                                edges, {}, options_.recompute == RecomputePolicy::kBlock)};
      };
    };
    return {over_chunks(chunks_.of(edges_->index(copies)), chunk_body,
                        options_.recompute == RecomputePolicy::kBlock, targets, e,
                        {sources.key, sources.value})};
  };
  return {x_data, maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                                   {x_data, x_hidden, edge_features_.forward()})[0]};
}

GraphTransformerDecoder::GraphTransformerDecoder(const ParameterScope& scope,
                                                 const ParameterScope& edge_scope,
                                                 const GraphTransformerOptions& options,
                                                 const EdgeTensors& edges,
                                                 int64_t num_edge_trainable, int64_t latent_width,
                                                 int64_t target_width, int64_t out_width)
    : options_(options),
      edge_features_(edge_scope, edges, num_edge_trainable),
      block_(std::make_unique<GraphTransformerBlock>(
          scope / "proc", options, edge_features_.width(), GraphTransformerBlock::Use::kMapper)),
      edges_(std::make_unique<LocalEdges>(edges)),
      chunks_(options.chunks) {
  const int64_t c = options.channels;
  if (latent_width != c) emb_nodes_src_ = Linear(scope / "emb_nodes_src", latent_width, c);
  emb_nodes_dst_ = Linear(scope / "emb_nodes_dst", target_width, c);
  const ParameterScope extractor = scope / "node_data_extractor";
  extractor_norm_ = LayerNorm(extractor / 0, c);  // always a plain one with torch's epsilon
  extractor_ = Linear(extractor / 1, c, out_width, true,
                      options.zero_extractor ? LinearStart::kZeros : LinearStart::kUniform);
}

at::Tensor GraphTransformerDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                                            int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    const at::Tensor x = emb_nodes_src_.weight.defined() ? emb_nodes_src_.forward(in[0]) : in[0];
    const auto sources = block_->sources(edges_->sources(block_->norm_sources(x), copies));
    const at::Tensor e = repeat_rows(block_->edge_features(in[2]), copies);
    const auto chunk_body = [this](const EdgeIndexPtr& edges) -> Piece {
      return [this, edges](const TensorList& part) -> TensorList {
        const auto [start, u] = block_->norm_targets(emb_nodes_dst_.forward(part[0]), {});
        const at::Tensor y = block_->forward(start, block_->targets(u), {part[2], part[3]}, part[1],
                                             edges, {}, /*ends_part=*/false);
        return {extractor_.forward(extractor_norm_.forward(y))};
      };
    };
    return {over_chunks(chunks_.of(edges_->index(copies)), chunk_body,
                        options_.recompute == RecomputePolicy::kBlock, in[1], e,
                        {sources.key, sources.value})};
  };
  return maybe_recomputed(options_.recompute == RecomputePolicy::kFull, all,
                          {latent, data, edge_features_.forward()})[0];
}

}  // namespace aifs::model
