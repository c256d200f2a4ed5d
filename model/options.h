// SPDX-License-Identifier: Apache-2.0
// The section "model" of a configuration.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "model/layers/bounding.h"
#include "model/layers/mlp.h"

namespace aifs::model {

enum class BlockKind { kGnn };
enum class ResidualKind { kSkip, kNone };

// One of encoder, processor, decoder.
struct BlockOptions {
  BlockKind kind = BlockKind::kGnn;
  int64_t mlp_extra_layers = 0;
  double mlp_hidden_ratio = 1.0;
  MlpImplementation mlp_implementation = MlpImplementation::kMlp;

  void bind(config::Binder& b);
};

// Widths of learnt features.
struct TrainableOptions {
  int64_t data = 8, hidden = 8;
  int64_t data_to_hidden = 8, hidden_to_hidden = 8, hidden_to_data = 8;

  void bind(config::Binder& b);
};

struct ModelOptions {
  int64_t channels = 64;
  int64_t layers = 4;
  BlockOptions encoder, processor, decoder;
  TrainableOptions trainable_parameters;
  bool latent_skip = true;
  ResidualKind residual = ResidualKind::kSkip;
  std::vector<BoundingOptions> bounding;
  std::vector<std::string> edge_attributes{"edge_length", "edge_dirs"};
  double layer_norm_eps = 1e-5;
  bool recompute = false;
  bool recompute_embeddings = false, recompute_messages = false;
  int64_t decoder_chunks = 1;
  KernelChoice kernels = KernelChoice::kAuto;

  void bind(config::Binder& b);
};

}  // namespace aifs::model

template <>
struct aifs::EnumNames<aifs::model::BlockKind> {
  static constexpr std::array<std::pair<aifs::model::BlockKind, const char*>, 1> table{
      {{aifs::model::BlockKind::kGnn, "gnn"}}};
};

template <>
struct aifs::EnumNames<aifs::model::ResidualKind> {
  using K = aifs::model::ResidualKind;
  static constexpr std::array<std::pair<K, const char*>, 2> table{
      {{K::kSkip, "skip"}, {K::kNone, "none"}}};
};
