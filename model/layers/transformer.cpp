// SPDX-License-Identifier: Apache-2.0
#include "model/layers/transformer.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/layers/joint_linear.h"
#include "model/layers/residual_mlp.h"

namespace aifs::model {

MlpOptions TransformerOptions::mlp() const {
  return {.in = channels,
          .hidden = hidden,
          .out = channels,
          .extra_layers = 0,
          .layer_norm = false,
          .implementation = implementation,
          .activation = activation};
}

HeadAttention::HeadAttention(const ParameterScope& scope, const TransformerOptions& options,
                             bool is_mapper, const SequenceNodes& nodes, const HeadAttention* alike)
    : options_(options),
      is_mapper_(is_mapper),
      heads_(scope.ranks().own(options.heads)),
      source_rows_(nodes.sources.rows),
      target_rows_(nodes.targets.rows) {
  const int64_t c = options.channels, a = options.attention_width();
  AIFS_CHECK(a % options.heads == 0, a, " attention channels for ", options.heads, " heads");
  const int64_t width = a / options.heads;
  const auto to_heads = [&](const std::string& name) {
    return Linear(scope / name, c, a, /*with_bias=*/false, LinearStart::kUniform,
                  {.out = true, .unit = width});
  };
  lin_q_ = to_heads("lin_q");
  lin_k_ = to_heads("lin_k");
  lin_v_ = to_heads("lin_v");
  projection_ =
      Linear(scope / "projection", a, c, true, LinearStart::kUniform, {.in = true, .unit = width});
  if (options.qk_norm) {
    const LayerNormOptions per_head{
        .eps = options.qk_norm_eps.value_or(options.norm.eps), .bias = false, .of_slices = true};
    q_norm_ = LayerNorm(scope / "q_norm", width, per_head);
    k_norm_ = LayerNorm(scope / "k_norm", width, per_head);
  }
  if (alike) {
    sequences_ = alike->sequences_;
  } else if (nodes.targets.share) {
    sequences_ = make_local_sequences(
        nodes, attention_options(nodes.sources.total(), nodes.targets.total()));
  }
}

SequenceAttentionOptions TransformerOptions::attention(bool is_mapper, int64_t num_sources,
                                                       int64_t num_targets) const {
  const bool flash = backend == AttentionBackend::kFlash;
  SequenceAttentionOptions attention{.heads = heads,
                                     .window = window,
                                     .shift = flash ? num_sources - num_targets : 0,
                                     .softcap = softcap};
  if (window == -1) {
    const bool counts_keys = is_mapper && !flash;
    attention.window = counts_keys ? std::optional(num_sources) : std::nullopt;
  }
  if (alibi) attention.alibi_slopes = alibi_slopes(heads);
  return attention;
}

SequenceAttentionOptions HeadAttention::attention_options(int64_t num_sources,
                                                          int64_t num_targets) const {
  SequenceAttentionOptions own = options_.attention(is_mapper_, num_sources, num_targets);
  own.heads = heads_.size;
  if (options_.alibi) own.alibi_slopes = own.alibi_slopes.narrow(0, heads_.begin, heads_.size);
  return own;
}

at::Tensor HeadAttention::forward(const at::Tensor& targets, const at::Tensor& sources,
                                  int64_t copies) const {
  const int64_t width = options_.attention_width() / options_.heads;
  const auto prepare = [&](const LayerNorm& norm, at::Tensor rows, const at::Tensor& positions) {
    if (options_.qk_norm) {
      rows = norm.forward(rows.view({rows.size(0), heads_.size, width})).view(rows.sizes());
    }
    return options_.rotary ? rotate_by_position(rows, copies, heads_.size, positions) : rows;
  };
  std::vector<at::Tensor> rows;  // of query, key and value
  if (sources.is_same(targets)) {
    rows = joint_linear(targets, {&lin_q_, &lin_k_, &lin_v_});
  } else {
    rows = joint_linear(sources, {&lin_k_, &lin_v_});
    rows.insert(rows.begin(), lin_q_.forward(targets));
  }
  const at::Tensor query = prepare(q_norm_, rows[0], target_rows_);
  const at::Tensor key = prepare(k_norm_, rows[1], source_rows_);
  const at::Tensor& value = rows[2];
  return projection_.forward(sequences_
                                 ? sequences_->attend(query, key, value, copies)
                                 : sequence_attention(query, key, value, copies,
                                                      attention_options(sources.size(0) / copies,
                                                                        targets.size(0) / copies)));
}

// ----------------------------------------------------------------------------------- processor ---

TransformerProcessor::TransformerProcessor(const ParameterScope& scope,
                                           const TransformerOptions& options, int64_t num_layers,
                                           const SequenceNodes& nodes)
    : options_(options), ranks_(scope.sliced().ranks()), units_(scope) {
  for (int64_t i = 0; i < num_layers; ++i) {
    const ParameterScope block = (scope / "proc" / i).sliced().of_layer(i);
    Layer& layer = layers_.emplace_back();
    layer.norm_attention =
        LayerNorm(block / "layer_norm_attention", options.channels, options.norm);
    layer.attention = HeadAttention(block / "attention", options, /*is_mapper=*/false, nodes,
                                    i > 0 ? &layers_.front().attention : nullptr);
    layer.norm_mlp = LayerNorm(block / "layer_norm_mlp", options.channels, options.norm);
    layer.mlp = Mlp(block / "mlp", options.mlp());
    units_.end_layer();
  }
}

Processor::State TransformerProcessor::start(const at::Tensor& x, int64_t /*copies*/,
                                             const at::Tensor& condition) const {
  return condition.defined() ? State{x, condition} : State{x};
}

Processor::State TransformerProcessor::run(const State& state, int64_t copies) const {
  std::vector<Step> steps;
  for (const Layer& layer : layers_) {
    steps.push_back([this, &layer, copies](const TensorList& in) -> TensorList {
      const at::Tensor condition = in.size() > 1 ? in[1] : at::Tensor();
      const SumAndNormed start = layer.norm_attention.forward_sum(in[0], {}, condition);
      const at::Tensor u = ranks_.copied(start.normed);
      return {residual_mlp(start.sum, layer.attention.forward(u, u, copies), condition,
                           {.norm = layer.norm_mlp,
                            .mlp = layer.mlp,
                            .recomputed = options_.recompute == RecomputePolicy::kMlp,
                            .ends_part = options_.recompute == RecomputePolicy::kBlock})};
    });
  }
  return units_.run(steps, {options_.recompute, options_.chunks, options_.offload}, state, 1);
}

// ------------------------------------------------------------------------------------- mappers ---

CrossAttentionBlock::CrossAttentionBlock(const ParameterScope& scope,
                                         const TransformerOptions& options,
                                         const SequenceNodes& nodes)
    : options_(options),
      unused_norms_{LayerNorm(scope / "layer_norm_attention", options.channels, options.norm),
                    LayerNorm(scope / "layer_norm_mlp", options.channels, options.norm)},
      norm_sources_(scope / "layer_norm_attention_src", options.channels, options.norm),
      norm_targets_(scope / "layer_norm_attention_dst", options.channels, options.norm),
      norm_mlp_(scope / "layer_norm_mpl", options.channels, options.norm),  // sic
      attention_(scope / "attention", options, /*is_mapper=*/true, nodes),
      mlp_(scope / "mlp", options.mlp()) {
  for (const char* unused : {"layer_norm_attention.", "layer_norm_mlp."})
    scope.set().mark_unused(scope.name(unused));
}

at::Tensor CrossAttentionBlock::forward(const at::Tensor& targets, const at::Tensor& sources,
                                        int64_t copies) const {
  const at::Tensor t = norm_targets_.forward(targets);
  const at::Tensor rows = attention_.forward(t, norm_sources_.forward(sources), copies);
  return residual_mlp(
      t, rows, {},
      {.norm = norm_mlp_, .mlp = mlp_, .recomputed = options_.recompute == RecomputePolicy::kMlp});
}

TransformerEncoder::TransformerEncoder(const ParameterScope& scope,
                                       const TransformerOptions& options, int64_t data_width,
                                       int64_t hidden_width, const SequenceNodes& nodes)
    : options_(options),
      block_(std::make_unique<CrossAttentionBlock>(scope / "proc", options, nodes)),
      emb_nodes_dst_(scope / "emb_nodes_dst", hidden_width, options.channels),
      emb_nodes_src_(scope / "emb_nodes_src", data_width, options.channels) {}

Encoded TransformerEncoder::forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                                    int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    return {block_->forward(repeat_rows(emb_nodes_dst_.forward(in[1]), copies),
                            emb_nodes_src_.forward(in[0]), copies)};
  };
  return {x_data,
          maybe_recomputed(runs_layers_again(options_.recompute), all, {x_data, x_hidden})[0]};
}

TransformerDecoder::TransformerDecoder(const ParameterScope& scope,
                                       const TransformerOptions& options, int64_t latent_width,
                                       int64_t target_width, int64_t out_width,
                                       const SequenceNodes& nodes)
    : options_(options),
      block_(std::make_unique<CrossAttentionBlock>(scope / "proc", options, nodes)) {
  const int64_t c = options.channels;
  if (latent_width != c) emb_nodes_src_ = Linear(scope / "emb_nodes_src", latent_width, c);
  emb_nodes_dst_ = Linear(scope / "emb_nodes_dst", target_width, c);
  const ParameterScope extractor = scope / "node_data_extractor";
  extractor_norm_ = LayerNorm(extractor / 0, c);
  extractor_ = Linear(extractor / 1, c, out_width);
}

at::Tensor TransformerDecoder::forward(const at::Tensor& latent, const at::Tensor& data,
                                       int64_t copies) const {
  const Piece all = [this, copies](const TensorList& in) -> TensorList {
    const at::Tensor sources =
        emb_nodes_src_.weight.defined() ? emb_nodes_src_.forward(in[0]) : in[0];
    const at::Tensor y = block_->forward(emb_nodes_dst_.forward(in[1]), sources, copies);
    return {extractor_.forward(extractor_norm_.forward(y))};
  };
  return maybe_recomputed(runs_layers_again(options_.recompute), all, {latent, data})[0];
}

}  // namespace aifs::model
