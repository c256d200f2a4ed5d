// SPDX-License-Identifier: Apache-2.0
// The Transformer: attention over whole node sets in node order, or in a window of it (Anemoi's
// Transformer blocks, mappers and processor). No edges.
//
// Traps: q, k and v have no bias. A mapper's residual starts from the normalised target, not from
// the target. Mappers own two norms that nothing uses (they are in Anemoi's state_dict). A window
// of -1 is none in a processor, but with torch's attention it is the number of keys in a mapper.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "model/layers/mlp.h"
#include "model/layers/part.h"
#include "model/layers/steps.h"
#include "model/nodes/local_sequences.h"

namespace aifs::model {

// Which program's attention is meant; the numbers of flash-attention 2 differ in cross attention.
enum class AttentionBackend { kSdpa, kFlash };

struct TransformerOptions {
  int64_t channels = 0;
  int64_t attention_channels = 0;  // 0: channels
  int64_t heads = 1;
  int64_t hidden = 0;                  // of the MLP
  std::optional<int64_t> window = {};  // none or -1: see above
  AttentionBackend backend = AttentionBackend::kSdpa;
  double softcap = 0.0;  // flash only
  bool alibi = false;    // flash only
  bool rotary = false;   // flash only, mappers only
  bool qk_norm = false;
  MlpImplementation implementation = MlpImplementation::kMlp;
  Activation activation = Activation::kGelu;
  LayerNormOptions norm = {};
  std::optional<double> qk_norm_eps = {};  // none: that of `norm`
  RecomputePolicy recompute = RecomputePolicy::kNone;
  int64_t chunks = 1;   // processors: groups of blocks under kFull
  int64_t offload = 0;  // processors: inputs of blocks or groups that are kept on the host
  bool zero_extractor = false;

  int64_t attention_width() const { return attention_channels > 0 ? attention_channels : channels; }
  // Returns the attention of all heads, between whole sequences.
  SequenceAttentionOptions attention(bool is_mapper, int64_t num_sources,
                                     int64_t num_targets) const;
  MlpOptions mlp() const;
};

// Multi-head attention with its linear maps; on tensor ranks each has heads of its own, and rows
// come in copied().
class HeadAttention {
 public:
  HeadAttention() = default;
  // `alike`: a layer with the same options between the same nodes, whose exchanges serve this one.
  HeadAttention(const ParameterScope& scope, const TransformerOptions& options, bool is_mapper,
                const SequenceNodes& nodes = {}, const HeadAttention* alike = nullptr);
  // Queries from rows of targets, keys and values from rows of sources.
  at::Tensor forward(const at::Tensor& targets, const at::Tensor& sources, int64_t copies) const;

 private:
  // Returns the attention of own heads, between whole sequences.
  SequenceAttentionOptions attention_options(int64_t num_sources, int64_t num_targets) const;

  TransformerOptions options_;
  bool is_mapper_ = false;
  TensorRanks::Range heads_;  // of this rank
  Linear lin_q_, lin_k_, lin_v_, projection_;
  LayerNorm q_norm_, k_norm_;
  at::Tensor source_rows_, target_rows_;             // positions of own rows; undefined: all
  std::shared_ptr<const LocalSequences> sequences_;  // null: this rank has all rows
};

class TransformerProcessor : public Processor {
 public:
  TransformerProcessor(const ParameterScope& scope, const TransformerOptions& options,
                       int64_t num_layers, const SequenceNodes& nodes = {});
  // The state is x and, for every layer, the condition if there is one.
  State start(const at::Tensor& x, int64_t copies, const at::Tensor& condition) const override;
  State run(const State& state, int64_t copies) const override;

 private:
  struct Layer {
    LayerNorm norm_attention, norm_mlp;
    HeadAttention attention;
    Mlp mlp;
  };
  TransformerOptions options_;
  TensorRanks ranks_;
  std::vector<Layer> layers_;
  LayerUnits units_;
};

// The block of a mapper: targets attend to sources.
class CrossAttentionBlock {
 public:
  CrossAttentionBlock(const ParameterScope& scope, const TransformerOptions& options,
                      const SequenceNodes& nodes = {});
  at::Tensor forward(const at::Tensor& targets, const at::Tensor& sources, int64_t copies) const;

 private:
  TransformerOptions options_;
  std::array<LayerNorm, 2> unused_norms_;
  LayerNorm norm_sources_, norm_targets_, norm_mlp_;
  HeadAttention attention_;
  Mlp mlp_;
};

class TransformerEncoder : public Encoder {
 public:
  TransformerEncoder(const ParameterScope& scope, const TransformerOptions& options,
                     int64_t data_width, int64_t hidden_width, const SequenceNodes& nodes = {});
  // The data rows are handed on as they came.
  Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                  int64_t copies) const override;

 private:
  TransformerOptions options_;
  std::unique_ptr<CrossAttentionBlock> block_;
  Linear emb_nodes_dst_, emb_nodes_src_;
};

class TransformerDecoder : public Decoder {
 public:
  TransformerDecoder(const ParameterScope& scope, const TransformerOptions& options,
                     int64_t latent_width, int64_t target_width, int64_t out_width,
                     const SequenceNodes& nodes = {});
  at::Tensor forward(const at::Tensor& latent, const at::Tensor& data,
                     int64_t copies) const override;

 private:
  TransformerOptions options_;
  std::unique_ptr<CrossAttentionBlock> block_;
  Linear emb_nodes_src_, emb_nodes_dst_;
  LayerNorm extractor_norm_;
  Linear extractor_;
};

constexpr auto enum_table(AttentionBackend) {
  using enum AttentionBackend;
  return std::to_array<EnumName<AttentionBackend>>({{kSdpa, "sdpa"}, {kFlash, "flash"}});
}

}  // namespace aifs::model
