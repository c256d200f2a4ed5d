// SPDX-License-Identifier: Apache-2.0
#include "train/loss.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace aifs::train {

at::Tensor PointwiseLoss::field(const at::Tensor& prediction, const at::Tensor& target) const {
  at::Tensor d = prediction - target;
  if (ignore_nans) d = at::where(at::isnan(d), at::zeros({}, d.options()), d);
  switch (kind) {
    case LossKind::kMse:
    case LossKind::kRmse:
      return d.square();
    case LossKind::kMae:
      return d.abs();
    case LossKind::kHuber: {
      const at::Tensor size = d.abs();
      return at::where(size < huber_delta, 0.5 * size.square(),
                       huber_delta * (size - 0.5 * huber_delta));
    }
    case LossKind::kLogCosh: {
      const at::Tensor size = d.abs();
      return size + at::softplus(-2.0 * size) - std::numbers::ln2;
    }
  }
  return d;
}

at::Tensor PointwiseLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                     OverVariables reduction) const {
  AIFS_CHECK(prediction.dim() == 5 && target.dim() == 5, "a loss needs (B, T, E, N, V) fields");
  bool has_grid = scalers.empty();
  at::Tensor errors = field(prediction, target);
  for (const Scaler& scaler : scalers) {
    errors = errors * scaler.factor;
    has_grid = has_grid || scaler.acts_on(kGrid) || prediction.size(kGrid) == 1;
  }
  AIFS_CHECK(has_grid, "a loss with scalers needs one over the grid");
  at::Tensor value;
  switch (reduction) {
    case OverVariables::kMean:
      value = errors.mean(kVariable);
      break;
    case OverVariables::kSum:
      value = errors.sum(kVariable);
      break;
    case OverVariables::kKeep:
      value = errors;
      break;
  }
  value = value.sum({kTime, kGrid})
              .mean(at::IntArrayRef{kBatch, 1});  // 1: the ensemble, now that time is gone
  return kind == LossKind::kRmse ? value.sqrt() : value;
}

PointwiseLoss PointwiseLoss::without(Axis axis) const {
  PointwiseLoss rest = *this;
  std::erase_if(rest.scalers, [&](const Scaler& scaler) { return scaler.acts_on(axis); });
  return rest;
}

PointwiseLoss PointwiseLoss::without(const std::string& name) const {
  PointwiseLoss rest = *this;
  std::erase_if(rest.scalers, [&](const Scaler& scaler) { return scaler.name == name; });
  return rest;
}

PointwiseLoss PointwiseLoss::for_columns(const std::vector<int64_t>& columns) const {
  PointwiseLoss part = *this;
  for (Scaler& scaler : part.scalers) {
    if (!scaler.acts_on(kVariable)) continue;
    const at::Tensor index = at::tensor(columns, at::kLong).to(scaler.factor.device());
    scaler.factor = scaler.factor.index_select(kVariable, index);
  }
  return part;
}

}  // namespace aifs::train
