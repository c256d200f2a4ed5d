// SPDX-License-Identifier: Apache-2.0
// Noise of ensemble members: drawn per hidden node (or on other nodes and projected), taken through
// an MLP, and given to the processor's conditional norms (Anemoi's NoiseConditioning).
//
// Noise is a function of the place: each of the ranks that share a sample draws all of it, from
// generators that stand alike, and uses what its own nodes need.
#pragma once

#include "model/layers/mlp.h"
#include "model/nodes/local_matrix.h"

namespace aifs::model {

struct NoiseOptions {
  int64_t channels = 4, hidden = 32;
  double std = 1.0;
  Activation activation = Activation::kGelu;
  double layer_norm_eps = 1e-5;
};

class NoiseInjector {
 public:
  // For these hidden nodes; with a projection, noise lives on the nodes that it starts from.
  NoiseInjector(const ParameterScope& scope, const NoiseOptions& options, const NodeTensors& nodes,
                const SparseMatrix& projection);

  // The condition of own hidden nodes, (B E n, channels), from noise (B, E, N, channels) of unit
  // variance on all nodes of all ranks.
  at::Tensor forward(const at::Tensor& noise) const;
  // Such noise from the default generator.
  at::Tensor draw(int64_t batch, int64_t members, const at::TensorOptions& tensor_options) const;

 private:
  NoiseOptions options_;
  NodeTensors nodes_;
  int64_t num_noise_nodes_;
  std::optional<LocalMatrix> projection_;
  Mlp mlp_;
};

}  // namespace aifs::model
