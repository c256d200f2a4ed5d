// SPDX-License-Identifier: Apache-2.0
// The loss of a reference case, over one or several datasets.
#pragma once

#include "app/conformance/model_setup.h"
#include "train/loss_term.h"

namespace aifs::conformance {

// Point-wise or, for ensembles, the continuous ranked probability score.
class CaseLoss {
 public:
  CaseLoss(const Json& json, const SafetensorsFile& tensors, const CaseDataset& dataset,
           at::ScalarType dtype);
  // prediction (B, T, E, N, V_out), target (B, T, 1, N, V_out).
  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target) const;

 private:
  train::LossPtr loss_;
};

}  // namespace aifs::conformance
