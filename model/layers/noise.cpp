// SPDX-License-Identifier: Apache-2.0
#include "model/layers/noise.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/nodes/node_rows.h"

namespace aifs::model {

NoiseInjector::NoiseInjector(const ParameterScope& scope, const NoiseOptions& options,
                             const NodeTensors& nodes, const SparseMatrix& projection)
    : options_(options),
      nodes_(nodes),
      num_noise_nodes_(projection.defined() ? projection.index->num_sources : nodes.total()),
      mlp_(scope / "noise_mlp", {.in = options.channels,
                                 .hidden = options.hidden,
                                 .out = options.channels,
                                 .extra_layers = 0,
                                 .activation = options.activation,
                                 .layer_norm_eps = options.layer_norm_eps}) {
  if (!projection.defined()) return;
  AIFS_CHECK(projection.index->num_targets == nodes.total(), "noise is projected to ",
             projection.index->num_targets, " nodes, the mesh has ", nodes.total());
  projection_.emplace(scope, projection, /*sources=*/nullptr, nodes.share.get());
}

at::Tensor NoiseInjector::forward(const at::Tensor& noise) const {
  AIFS_CHECK(
      noise.dim() == 4 && noise.size(2) == num_noise_nodes_ && noise.size(3) == options_.channels,
      "noise of shape ", noise.sizes(), ", expected (B, E, ", num_noise_nodes_, ", ",
      options_.channels, ")");
  const at::Tensor scaled = noise * options_.std;
  const at::Tensor at_nodes =
      projection_ ? projection_->product(scaled) : own_nodes(scaled, nodes_, 2);
  return mlp_.forward(at_nodes.reshape({-1, options_.channels}));
}

at::Tensor NoiseInjector::draw(int64_t batch, int64_t members,
                               const at::TensorOptions& tensor_options) const {
  return at::randn({batch, members, num_noise_nodes_, options_.channels}, tensor_options);
}

}  // namespace aifs::model
