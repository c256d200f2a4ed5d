// SPDX-License-Identifier: Apache-2.0
#include "train/loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numbers>

#include "core/check.h"

namespace aifs::train {

namespace {

at::Tensor to_index(const std::vector<int64_t>& columns, at::Device device) {
  return at::tensor(columns, at::kLong).to(device);
}

// One term on the columns it looks at.
at::Tensor term_value(const CombinedLoss::Term& term, const at::Tensor& prediction,
                      const at::Tensor& target, OverVariables reduction) {
  if (term.columns.empty()) return term.loss(prediction, target, reduction);
  std::vector<int64_t> predicted, compared;
  for (const auto& pair : term.columns) {
    predicted.push_back(pair.predicted);
    compared.push_back(pair.target);
  }
  const at::Tensor index = to_index(predicted, prediction.device());
  const at::Tensor value = term.loss.for_columns(predicted)(
      prediction.index_select(kVariable, index),
      target.index_select(kVariable, to_index(compared, target.device())), reduction);
  if (reduction != OverVariables::kKeep) return value;
  return at::zeros({prediction.size(kVariable)}, value.options()).index_copy(0, index, value);
}

}  // namespace

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
    has_grid = has_grid || scaler.acts_on(kGrid);
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
  // In fp64, so that the sum does not depend on how nodes are divided over ranks.
  value = value.sum({kTime, kGrid}, /*keepdim=*/false, at::kDouble)
              .mean(at::IntArrayRef{kBatch, 1});  // 1: the ensemble, now that time is gone
  if (sum_over_ranks) value = sum_over_ranks(value);
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
    if (scaler.factor.size(kVariable) == 1) continue;  // the same for every variable
    scaler.factor =
        scaler.factor.index_select(kVariable, to_index(columns, scaler.factor.device()));
  }
  return part;
}

at::Tensor CombinedLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                    OverVariables reduction) const {
  std::vector<int64_t> shape;
  if (reduction == OverVariables::kKeep) shape.push_back(prediction.size(kVariable));
  at::Tensor sum = at::zeros(shape, prediction.options());
  for (const Term& term : terms) {
    sum = sum + term.weight * term_value(term, prediction, target, reduction);
  }
  return sum;
}

CombinedLoss CombinedLoss::without(Axis axis) const {
  CombinedLoss rest = *this;
  for (Term& term : rest.terms)
    term.loss = term.loss.without(axis);
  return rest;
}

CombinedLoss CombinedLoss::without(const std::string& scaler) const {
  CombinedLoss rest = *this;
  for (Term& term : rest.terms)
    term.loss = term.loss.without(scaler);
  return rest;
}

CombinedLoss CombinedLoss::for_columns(const std::vector<int64_t>& columns) const {
  CombinedLoss part = *this;
  for (Term& term : part.terms) {
    if (term.columns.empty()) {
      for (const int64_t column : columns)
        term.columns.push_back({column, column});
      continue;
    }
    std::erase_if(term.columns, [&](const ColumnPair& pair) {
      return std::find(columns.begin(), columns.end(), pair.predicted) == columns.end();
    });
  }
  std::erase_if(part.terms, [](const Term& term) { return term.columns.empty(); });
  return part;
}

}  // namespace aifs::train
