// SPDX-License-Identifier: Apache-2.0
// The GraphTransformer: attention over edges, whose features enter keys and values (Anemoi's
// GraphTransformer blocks, mappers and processor).
//   u = norm(x);  y = projection(attention(u) + lin_self(u)) + x;  x' = mlp(norm(y)) + y
// Edges are never updated; every block projects the same raw features again. On tensor ranks a
// processor's block has its own heads and a slice of the hidden channels of its MLP.
#pragma once

#include <memory>
#include <vector>

#include "model/kernels/edge_chunks.h"
#include "model/kernels/graph_attention.h"
#include "model/layers/mlp.h"
#include "model/layers/part.h"
#include "model/layers/steps.h"
#include "model/layers/trainable_features.h"
#include "model/nodes/local_edges.h"

namespace aifs::model {

struct GraphTransformerOptions {
  int64_t channels = 0;
  int64_t attention_channels = 0;  // 0: channels; a multiple of the heads
  int64_t heads = 1;
  int64_t hidden = 0;  // of the MLP
  bool qk_norm = false;
  bool edge_pre_mlp = false;  // a linear and an activation on the edge features of every block
  MlpImplementation implementation = MlpImplementation::kMlp;
  Activation activation = Activation::kGelu;
  LayerNormOptions norm = {};
  std::optional<double> qk_norm_eps = {};  // none: that of `norm`
  RecomputePolicy recompute = RecomputePolicy::kNone;
  int64_t chunks = 1;   // mappers: ranges of targets worked on one after another
                        // processors: groups of blocks for recomputation; 0: each on its own
  int64_t offload = 0;  // processors: inputs of blocks or groups that are kept on the host
  bool zero_extractor = false;

  int64_t attention_width() const { return attention_channels > 0 ? attention_channels : channels; }
};

class GraphTransformerBlock {
 public:
  enum class Use { kProcessor, kMapper };

  // Registers the block's tensors under `scope`; a mapper's block has one norm more, for sources.
  GraphTransformerBlock(const ParameterScope& scope, const GraphTransformerOptions& options,
                        int64_t edge_width, Use use);

  // Rows at the sources of edges, made ready once for all targets, and at the targets.
  struct Sources {
    at::Tensor key, value;
  };
  struct Targets {
    at::Tensor query, self;
  };
  // `u` are rows of sources or targets, normalised; of both, in one operation.
  Sources sources(const at::Tensor& u) const;
  Targets targets(const at::Tensor& u) const;
  std::pair<Sources, Targets> both(const at::Tensor& u) const;

  at::Tensor norm_sources(const at::Tensor& x) const { return norm_sources_.forward(x); }
  // The targets and their norm.
  SumAndNormed norm_targets(const at::Tensor& x, const at::Tensor& condition) const {
    const SumAndNormed both = norm_.forward_sum(x, {}, condition);
    return {both.sum, ranks_.copied(both.normed)};
  }
  // The edge features as attention takes them, (M, D + 1): after the block's own linear if there is
  // one, and with a column of ones for the bias.
  at::Tensor edge_features(const at::Tensor& e) const;
  // From targets x (rows, C), what their norm became, and the sources: the new targets.
  // `ends_part`: see residual_mlp().
  at::Tensor forward(const at::Tensor& x, const Targets& targets, const Sources& sources,
                     const at::Tensor& edge_features, const EdgeIndexPtr& edges,
                     const at::Tensor& condition, bool ends_part) const;

 private:
  at::Tensor attend(const Targets& targets, const Sources& sources, const at::Tensor& edge_features,
                    const EdgeIndexPtr& edges) const;
  at::Tensor per_head_norm(const LayerNorm& norm, const at::Tensor& rows) const;

  GraphTransformerOptions options_;
  TensorRanks ranks_;
  int64_t heads_;  // of this rank
  Linear lin_key_, lin_query_, lin_value_, lin_self_, lin_edge_, projection_, edge_pre_mlp_;
  LayerNorm q_norm_, k_norm_, norm_, norm_sources_, norm_mlp_;
  Mlp mlp_;
};

class GraphTransformerEncoder : public Encoder {
 public:
  GraphTransformerEncoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                          const GraphTransformerOptions& options, const EdgeTensors& edges,
                          int64_t num_edge_trainable, int64_t data_width, int64_t hidden_width);
  // The data rows are handed on as they came.
  Encoded forward(const at::Tensor& x_data, const at::Tensor& x_hidden,
                  int64_t copies) const override;

 private:
  GraphTransformerOptions options_;
  EdgeFeatures edge_features_;
  std::unique_ptr<GraphTransformerBlock> block_;
  Linear emb_nodes_dst_, emb_nodes_src_;
  std::unique_ptr<LocalEdges> edges_;
  EdgeChunks chunks_;
};

class GraphTransformerProcessor : public Processor {
 public:
  GraphTransformerProcessor(const ParameterScope& scope, const ParameterScope& edge_scope,
                            const GraphTransformerOptions& options, const EdgeTensors& edges,
                            int64_t num_edge_trainable, int64_t num_layers);
  // The state is x and, for every layer, the edge features and the condition if there is one.
  State start(const at::Tensor& x, int64_t copies, const at::Tensor& condition) const override;
  State run(const State& state, int64_t copies) const override;

 private:
  GraphTransformerOptions options_;
  EdgeFeatures edge_features_;
  std::vector<GraphTransformerBlock> blocks_;
  std::unique_ptr<LocalEdges> edges_;
  LayerUnits units_;
};

class GraphTransformerDecoder : public Decoder {
 public:
  // `latent_width` is the width of the rows that come in, channels unless latents are concatenated.
  GraphTransformerDecoder(const ParameterScope& scope, const ParameterScope& edge_scope,
                          const GraphTransformerOptions& options, const EdgeTensors& edges,
                          int64_t num_edge_trainable, int64_t latent_width, int64_t target_width,
                          int64_t out_width);
  at::Tensor forward(const at::Tensor& latent, const at::Tensor& data,
                     int64_t copies) const override;

 private:
  GraphTransformerOptions options_;
  EdgeFeatures edge_features_;
  std::unique_ptr<GraphTransformerBlock> block_;
  Linear emb_nodes_src_, emb_nodes_dst_;
  LayerNorm extractor_norm_;
  Linear extractor_;
  std::unique_ptr<LocalEdges> edges_;
  EdgeChunks chunks_;
};

}  // namespace aifs::model
