// SPDX-License-Identifier: Apache-2.0
// The table of losses. A new one is its own pair of files and a line here.
#include "train/loss/ensemble_loss.h"
#include "train/loss/graph_loss.h"
#include "train/loss/huber.h"
#include "train/loss/logcosh.h"
#include "train/loss/mae.h"
#include "train/loss/mse.h"
#include "train/loss/spectral_loss.h"

namespace aifs::train {

const std::vector<config::Kind<LossKind>>& LossKind::kinds() {
  using config::kind;
  static const std::vector<config::Kind<LossKind>> all{
      kind<LossKind, MseKind>("mse"),
      kind<LossKind, RmseKind>("rmse"),
      kind<LossKind, MaeKind>("mae"),
      kind<LossKind, HuberKind>("huber"),
      kind<LossKind, LogCoshKind>("logcosh"),
      kind<LossKind, CrpsKind>("crps"),
      kind<LossKind, EnergyScoreKind>("energy_score"),
      kind<LossKind, GraphEnergyScoreKind>("graph_energy_score"),
      kind<LossKind, GraphEdgeEnergyScoreKind>("graph_edge_energy_score"),
      kind<LossKind, GraphEdgeCrpsKind>("graph_edge_crps"),
      kind<LossKind, GraphVariogramScoreKind>("graph_variogram_score"),
      kind<LossKind, SpectralAmseKind>("spectral_amse"),
      kind<LossKind, PowerSpectrumKind>("power_spectrum"),
      kind<LossKind, LogSpectralDistanceKind>("log_spectral_distance"),
      kind<LossKind, FourierCorrelationKind>("fourier_correlation"),
      kind<LossKind, SpectralCrpsKind>("spectral_crps")};
  return all;
}

}  // namespace aifs::train
