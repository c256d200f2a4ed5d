// SPDX-License-Identifier: Apache-2.0
// The table of scalers. A new one is its own pair of files and a line here.
#include "train/loss/grid_scalers.h"
#include "train/loss/lead_time_scaler.h"
#include "train/loss/level_scaler.h"
#include "train/loss/loss_term.h"
#include "train/loss/tendency_scalers.h"
#include "train/loss/time_scaler.h"
#include "train/loss/values_scaler.h"
#include "train/loss/variable_scalers.h"

namespace aifs::train {

const std::vector<config::Kind<ScalerKind>>& ScalerKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<ScalerKind>> all{
      kind<ScalerKind, PressureLevelKind>("pressure_level"),
      kind<ScalerKind, GeneralVariableKind>("general_variable"),
      kind<ScalerKind, NodeWeightsKind>("node_weights"),
      kind<ScalerKind, TimeStepsKind>("time_steps"),
      kind<ScalerKind, StdevTendencyKind>("stdev_tendency"),
      kind<ScalerKind, VarTendencyKind>("var_tendency"),
      kind<ScalerKind, NanMaskKind>(kNanMaskName),
      kind<ScalerKind, LeadTimeDecayKind>("lead_time_decay"),
      kind<ScalerKind, VariableMaskKind>("variable_mask"),
      kind<ScalerKind, SpectralScalerKind>("spectral"),
      kind<ScalerKind, ValuesKind>("values")};
  return all;
}

void WeightsKind::bind(config::Binder& b) {
  b.choice("norm", norm, {"normalisation of the weights"});
  bind_settings(b);
}

Scaler WeightsKind::make(const std::string& name, const ScalerPlace& place) const {
  const at::Tensor normalised = normalise_weights(weights(place), norm);
  return over_axes(name, normalised.to(place.inputs.device, place.inputs.dtype), axes());
}

}  // namespace aifs::train
