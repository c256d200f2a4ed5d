// SPDX-License-Identifier: Apache-2.0
// The section "model" of a configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "model/layers/bounding.h"
#include "model/layers/mlp.h"
#include "model/layers/residual.h"
#include "model/layers/steps.h"
#include "model/layers/transformer.h"

namespace aifs::model {

enum class BlockKind { kGnn, kGraphTransformer, kTransformer, kPointWise, kNone };
enum class NoiseKind { kNone, kConditioning };

// How the latents of several datasets become one.
enum class Aggregation { kSum, kMean, kConcat };

// One of encoder, processor, decoder. Options that a kind does not know must be left alone.
struct BlockOptions {
  BlockKind kind = BlockKind::kGnn;
  int64_t channels = 0;
  int64_t mlp_extra_layers = 0;
  double mlp_hidden_ratio = 0.0;
  MlpImplementation mlp_implementation = MlpImplementation::kMlp;
  Activation activation = Activation::kGelu;
  int64_t heads = 16;
  int64_t attention_channels = 0;
  bool qk_norm = false;
  bool edge_pre_mlp = false;
  int64_t window = 0;
  AttentionBackend attention = AttentionBackend::kSdpa;
  double softcap = 0.0;
  bool alibi = false;
  bool rotary = false;
  RecomputePolicy recompute = RecomputePolicy::kNone;
  int64_t chunks = 1;
  int64_t edge_ranges = 1;
  int64_t offload = 0;
  // Of its norms, and of those of queries and keys; none: the model's, and `norm_eps`.
  std::optional<double> norm_eps = {}, qk_norm_eps = {};
  std::optional<int64_t> trainable = {};  // learnt features per edge; none: as the model says

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  // What `mlp_hidden_ratio` says, or the kind's own value.
  double hidden_ratio() const;
};

// What a decoder knows of its nodes.
enum class TargetFeature { kEncodedData, kCoordinates, kForcings, kPrognostics, kTrainable };

struct DecoderOptions : BlockOptions {
  std::vector<std::string> target_features{"encoded_data"};
  bool zero_extractor = false;

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  // Throws ConfigError with this path of the decoder for a name that is none.
  std::vector<TargetFeature> features(const std::string& path = "model.decoder") const;
};

// Widths of learnt features.
struct TrainableOptions {
  int64_t data = 8, hidden = 8;
  int64_t data_to_hidden = 8, hidden_to_hidden = 8, hidden_to_data = 8;
  std::map<std::string, int64_t> nodes = {};  // of node sets that differ from `data` and `hidden`

  void bind(config::Binder& b);
  // Per node of a dataset, and of a hidden mesh.
  int64_t of_data(const std::string& name) const { return of_nodes(name, data); }
  int64_t of_mesh(const std::string& name) const { return of_nodes(name, hidden); }

 private:
  int64_t of_nodes(const std::string& name, int64_t otherwise) const;
};

// Several meshes, fine to coarse; channels double from one to the next.
struct HierarchyOptions {
  std::vector<std::string> meshes;
  bool level_processing = false;
  int64_t level_layers = 1;
  BlockOptions upscale, downscale;
  int64_t upscale_trainable = 8, downscale_trainable = 8;

  // Of each finer mesh's processor, on the way down and on the way up.
  int64_t layers() const { return level_processing ? level_layers : 0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Members that differ by noise.
struct EnsembleOptions {
  int64_t members = 1;
  NoiseKind noise = NoiseKind::kNone;
  int64_t noise_channels = 4;
  int64_t noise_hidden = 32;
  double noise_std = 1.0;
  Activation noise_activation = Activation::kGelu;
  // Noise that is drawn on other nodes than the hidden ones: those of a set, along its edges to
  // the hidden nodes, or those that a matrix in a file starts from.
  std::string noise_nodes = {}, noise_weights = {};  // weights: an attribute of these edges
  std::string noise_matrix = {};
  bool noise_normalised = false;  // divide weights by their sum

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// Where the options of a dataset's network stand, for ConfigErrors.
struct PartPaths {
  std::string model = "model", encoder = "model.encoder", decoder = "model.decoder";
  std::string residual = "model.residual";
};

struct ModelOptions {
  int64_t channels = 64;
  int64_t layers = 4;
  BlockOptions encoder, processor;
  DecoderOptions decoder;
  // Of several datasets: those that differ from the ones above, encoders and decoders by their
  // names, residuals by the dataset.
  std::vector<std::pair<std::string, BlockOptions>> encoders;
  std::vector<std::pair<std::string, DecoderOptions>> decoders;
  std::vector<std::pair<std::string, ResidualOptions>> residuals;
  TrainableOptions trainable_parameters;
  bool latent_skip = true;
  ResidualOptions residual;
  // Attribute of the data nodes that marks cells which the network decides; empty: all. Of several
  // datasets those that differ, by dataset.
  std::string output_mask;
  std::map<std::string, std::string> output_masks;
  std::vector<BoundingOptions> bounding;
  std::vector<std::string> edge_attributes{"edge_length", "edge_dirs"};
  double layer_norm_eps = 1e-5;
  KernelChoice kernels = KernelChoice::kAuto;
  Aggregation aggregation = Aggregation::kSum;
  double memory_budget = 0.0;  // GiB; 0: what `recompute` says
  HierarchyOptions hierarchy;
  EnsembleOptions ensemble;

  // The same for encoder, processor and decoder.
  void set_recompute(RecomputePolicy policy) {
    encoder.recompute = processor.recompute = decoder.recompute = policy;
  }

  void bind(config::Binder& b);
  // What must hold between the parts: widths and heads, encoder and decoder.
  void validate(const std::string& path) const;
  // The same for an encoder and a decoder that stand elsewhere.
  void validate_parts(const PartPaths& paths) const;
  // Whether any part is of this kind.
  bool uses(BlockKind kind) const;
  // The hidden node sets of the graph, fine to coarse.
  std::vector<std::string> meshes() const;
  // Of all processors: on a hierarchy down to its coarsest mesh and up again.
  int64_t num_layers() const;
  // Learnt features per edge of a part: its own number, or the model's.
  int64_t encoder_features() const {
    return encoder.trainable.value_or(trainable_parameters.data_to_hidden);
  }
  int64_t processor_features() const {
    return processor.trainable.value_or(trainable_parameters.hidden_to_hidden);
  }
  int64_t decoder_features() const {
    return decoder.trainable.value_or(trainable_parameters.hidden_to_data);
  }
  int64_t upscale_features() const {
    return hierarchy.upscale.trainable.value_or(hierarchy.upscale_trainable);
  }
  int64_t downscale_features() const {
    return hierarchy.downscale.trainable.value_or(hierarchy.downscale_trainable);
  }
  // The width of a part.
  int64_t width(const BlockOptions& block) const {
    return block.channels > 0 ? block.channels : channels;
  }
};

// Throws ConfigError (path "parallel.pipeline") for a processor that so many stages cannot share by
// layers.
void check_stages(const BlockOptions& processor, int64_t stages);
// Throws ConfigError (path "parallel.tensor") for a processor that so many ranks cannot share by
// slices.
void check_slices(const BlockOptions& processor, int64_t ranks);

constexpr auto enum_table(BlockKind) {
  using enum BlockKind;
  return std::to_array<EnumName<BlockKind>>({{kGnn, "gnn"},
                                             {kGraphTransformer, "graph_transformer"},
                                             {kTransformer, "transformer"},
                                             {kPointWise, "point_wise"},
                                             {kNone, "none"}});
}

constexpr auto enum_table(Aggregation) {
  using enum Aggregation;
  return std::to_array<EnumName<Aggregation>>(
      {{kSum, "sum"}, {kMean, "mean"}, {kConcat, "concat"}});
}

constexpr auto enum_table(NoiseKind) {
  using enum NoiseKind;
  return std::to_array<EnumName<NoiseKind>>({{kNone, "none"}, {kConditioning, "conditioning"}});
}

constexpr auto enum_table(TargetFeature) {
  using enum TargetFeature;
  return std::to_array<EnumName<TargetFeature>>({{kEncodedData, "encoded_data"},
                                                 {kCoordinates, "coordinates"},
                                                 {kForcings, "forcings"},
                                                 {kPrognostics, "prognostics"},
                                                 {kTrainable, "trainable_parameters"}});
}

}  // namespace aifs::model
