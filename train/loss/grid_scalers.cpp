// SPDX-License-Identifier: Apache-2.0
#include "train/loss/grid_scalers.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "train/loss/node_mask.h"

namespace aifs::train {

at::Tensor reweighted_nodes(const at::Tensor& weights, const at::Tensor& mask, double fraction) {
  AIFS_CHECK(fraction > 0.0 && fraction < 1.0, "a share of ", fraction);
  const at::Tensor num_masked = mask.sum();
  AIFS_CHECK(num_masked.item<int64_t>() > 0, "no node is in the mask");
  const at::Tensor rest = weights.masked_select(at::logical_not(mask)).sum();
  return weights.masked_fill(mask, fraction / (1.0 - fraction) * rest / num_masked);
}

at::Tensor spectral_weights(int64_t modes, int64_t repeats) {
  return at::full({modes * repeats}, 1.0 / static_cast<double>(modes), at::kFloat);
}

void NodeWeightsKind::bind_settings(config::Binder& b) {
  b.text("node_attribute", node_attribute_name, {"attribute of the data nodes that weighs them"});
  b.text("node_mask", node_mask_name,
         {"attribute that marks nodes which weigh the same and have a fixed share; empty: none"});
  b.number("node_mask_share", node_mask_share, {.min = 1e-9, .max = 1.0 - 1e-9},
           {"their share of the total weight"});
}

void NodeWeightsKind::bind(config::Binder& b) {
  WeightsKind::bind(b);
  b.boolean("node_inverse", node_inverse, {"1 where the attribute is 0, and 0 elsewhere"});
}

void NodeWeightsKind::bind_in_section(config::Binder& b) {
  bind_settings(b);
  b.choice("node_norm", norm, {"normalisation of the weights of nodes"});
}

at::Tensor NodeWeightsKind::weights(const ScalerPlace& place) const {
  const LossInputs& inputs = place.inputs;
  const auto path_of = [&](const char* key) { return concat(place.path, ".", key); };
  at::Tensor weights = node_attribute(inputs.nodes, node_attribute_name, path_of("node_attribute"));
  if (node_inverse) weights = (weights == 0.0).to(at::kFloat);
  // Cells that the network does not decide count for nothing, and not for share and norm either.
  const at::Tensor& decided = inputs.output_mask;
  if (decided.defined()) weights = weights.masked_fill(at::logical_not(decided), 0.0);
  if (node_mask_name.empty()) return weights;
  const std::string path = path_of("node_mask");
  at::Tensor mask = node_mask(inputs.nodes, node_mask_name, path);
  if (decided.defined()) mask = at::logical_and(mask, decided);
  const at::Tensor rest = weights.masked_select(at::logical_not(mask));
  if (!mask.any().item<bool>() || !(rest.sum().item<double>() > 0.0)) {
    throw ConfigError(
        path,
        concat("'", node_mask_name, "' marks ", mask.sum().item<int64_t>(),
               " nodes that count, and the others weigh nothing: no share can be kept"),
        "leave it empty where all nodes keep their weights");
  }
  return reweighted_nodes(weights, mask, node_mask_share);
}

void SpectralScalerKind::bind(config::Binder& b) {
  WeightsKind::bind(b);
  b.integer("modes", modes, {.min = 0},
            {"number of waves that share the weight 1; 0: as many as the loss has"});
  b.integer("repeats", repeats, {.min = 1}, {"how often the waves are repeated"});
}

at::Tensor SpectralScalerKind::weights(const ScalerPlace& place) const {
  return spectral_weights(modes > 0 ? modes : place.modes, repeats);
}

}  // namespace aifs::train
