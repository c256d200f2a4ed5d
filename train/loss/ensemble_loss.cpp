// SPDX-License-Identifier: Apache-2.0
#include "train/loss/ensemble_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "train/loss/member_pairs.h"

namespace aifs::train {

at::Tensor CrpsLoss::value(const Fields& fields) const {
  auto [members, truth] = std::pair(fields.prediction, fields.target);
  if (ignore_nans()) std::tie(members, truth) = without_nans(members, truth);
  const double c = pair_coefficient(members.size(kEnsemble), alpha_);
  const at::Tensor score = kernel_score(members, truth, c, absolute);
  return reduce_field(apply_scalers(score, fields.scalers, fields.nodes), fields.over_variables,
                      fields.nodes);
}

at::Tensor EnergyLoss::value(const Fields& fields) const {
  const bool over_nodes = over_ != NormOver::kVariables;
  const bool over_variables = over_ != NormOver::kSpatial;
  AIFS_CHECK(!over_variables || fields.over_variables != OverVariables::kSum,
             "the sum over variables of a score over variables is not defined");
  auto [members, truth] = std::pair(fields.prediction, fields.target);
  if (ignore_nans()) std::tie(members, truth) = without_nans(members, truth);

  std::vector<Scaler> outer, inner;
  for (const Scaler& scaler : fields.scalers) {
    const bool in_norm =
        (over_nodes && scaler.acts_on(kGrid)) || (over_variables && scaler.acts_on(kVariable));
    (in_norm ? inner : outer).push_back(scaler);
  }
  const bool has_grid =
      fields.scalers.empty() || std::any_of(fields.scalers.begin(), fields.scalers.end(),
                                            [](const Scaler& s) { return s.acts_on(kGrid); });
  AIFS_CHECK(has_grid, "a loss with scalers needs one over the grid");
  const at::Tensor weights = scaler_product(inner, members, fields.nodes);
  std::vector<int64_t> axes;
  if (over_nodes) axes.push_back(kGrid);
  if (over_variables) axes.push_back(kVariable);
  at::Tensor squares = pair_square_sums(members, truth, weights, axes);
  if (over_nodes) squares = fields.nodes.sum_over_ranks(squares);

  const int64_t n = members.size(kEnsemble);
  const double c = pair_coefficient(n, fair_ ? 1.0 : 0.0);
  const at::Tensor norms = safe_sqrt(squares);
  at::Tensor score =
      norms.narrow(kEnsemble, 0, n).mean(kEnsemble, /*keepdim=*/true) -
      c * norms.narrow(kEnsemble, n, norms.size(kEnsemble) - n).sum(kEnsemble, /*keepdim=*/true);
  for (const Scaler& scaler : outer)
    score = score * own_nodes(scaler.factor, members.size(kGrid), fields.nodes);
  if (over_variables) {
    std::vector<int64_t> shape = score.sizes().vec();
    shape[kVariable] = members.size(kVariable);
    score = score.expand(shape);
  }
  // A norm over nodes is of all ranks already.
  return reduce_field(score, fields.over_variables, over_nodes ? NodeSlice() : fields.nodes);
}

void bind_alpha(config::Binder& b, double& alpha) {
  b.number("alpha", alpha, {.min = 0.0, .max = 1.0}, {"1 is the fair score, 0 the plain one"});
}

void bind_fair(config::Binder& b, bool& fair) {
  b.boolean("fair", fair, {"the fair score, or the plain one"});
}

void CrpsKind::bind(config::Binder& b) {
  bind_alpha(b, alpha);
}

LossPtr CrpsKind::make(const LossPlace& place) const {
  return std::make_shared<CrpsLoss>(alpha, place.elementary(0));
}

void EnergyScoreKind::bind(config::Binder& b) {
  b.choice("norm_over", norm_over, {"what its norm goes over"});
  bind_fair(b, fair);
}

LossPtr EnergyScoreKind::make(const LossPlace& place) const {
  return std::make_shared<EnergyLoss>(norm_over, fair, place.elementary(0));
}

}  // namespace aifs::train
