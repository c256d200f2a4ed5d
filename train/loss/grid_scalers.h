// SPDX-License-Identifier: Apache-2.0
// Weights over the grid's dimension: the scalers "node_weights" and "nan_mask_weights" of nodes,
// and "spectral" of waves.
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

// (N): nodes in the mask all get the weight that gives them together the share `fraction` of the
// total (stretched grids); the others keep theirs. 0 < fraction < 1.
at::Tensor reweighted_nodes(const at::Tensor& weights, const at::Tensor& mask, double fraction);
// (modes * repeats): 1 / modes each, for coefficients of a spectral loss.
at::Tensor spectral_weights(int64_t modes, int64_t repeats);

struct NodeWeightsKind : WeightsKind {
  std::string node_attribute_name = "area_weight";
  std::string node_mask_name;  // attribute of nodes that share `node_mask_share` of the weight
  double node_mask_share = 0.5;
  bool node_inverse = false;  // 1 where the attribute is 0, else 0

  void bind_settings(config::Binder& b) override;
  void bind(config::Binder& b) override;
  void bind_in_section(config::Binder& b) override;
  void become_unnamed() override { norm = WeightNorm::kUnitSum; }
  std::vector<Axis> axes() const override { return {kGrid}; }
  GridUse grid_use() const override { return GridUse::kNodes; }
  const char* key_to_use() const override { return node_mask_name.empty() ? nullptr : "node_mask"; }
  at::Tensor weights(const ScalerPlace& place) const override;
};

struct SpectralScalerKind : WeightsKind {
  int64_t modes = 0;    // 0: as many as the loss has
  int64_t repeats = 1;  // number of equal blocks of modes

  void bind(config::Binder& b) override;
  std::vector<Axis> axes() const override { return {kGrid}; }
  GridUse grid_use() const override { return GridUse::kWaves; }
  at::Tensor weights(const ScalerPlace& place) const override;
};

// The imputer's mask, which comes with each batch: it has no values of its own.
struct NanMaskKind : ScalerKind {
  std::vector<Axis> axes() const override { return {kBatch, kGrid, kVariable}; }
  Scaler make(const std::string& name, const ScalerPlace&) const override {
    return {name, {}, axes()};
  }
};

}  // namespace aifs::train
