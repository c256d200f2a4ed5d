// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "train/loss/squared_errors.h"

namespace aifs::train {

namespace {

at::Tensor to_index(const std::vector<int64_t>& columns, at::Device device) {
  return at::tensor(columns, at::kLong).to(device);
}

}  // namespace

at::Tensor PointwiseLoss::field(const at::Tensor& prediction, const at::Tensor& target) const {
  at::Tensor d = prediction - target;
  if (ignore_nans) d = at::where(at::isnan(d), at::zeros({}, d.options()), d);
  return error.of(d);
}

at::Tensor own_nodes(const at::Tensor& factor, int64_t field_nodes, const NodeSlice& nodes) {
  const int64_t size = factor.size(kGrid);
  if (size == 1 || size == field_nodes || size != nodes.total) return factor;
  return factor.narrow(kGrid, nodes.first, field_nodes);
}

at::Tensor scaler_product(const std::vector<Scaler>& scalers, const at::Tensor& field,
                          const NodeSlice& nodes) {
  at::Tensor product = at::ones({1, 1, 1, 1, 1}, field.options().requires_grad(false));
  for (const Scaler& scaler : scalers)
    product = product * own_nodes(scaler.factor, field.size(kGrid), nodes);
  return product;
}

std::pair<at::Tensor, at::Tensor> without_nans(const at::Tensor& members, const at::Tensor& truth) {
  const at::Tensor bad =
      at::logical_or(at::isnan(members).any(kEnsemble, /*keepdim=*/true), at::isnan(truth));
  return {members.masked_fill(bad, 0.0), truth.masked_fill(bad, 0.0)};
}

namespace {

// The scalers cut to the own nodes of a field.
std::vector<at::Tensor> own_factors(const std::vector<Scaler>& scalers, int64_t field_nodes,
                                    const NodeSlice& nodes) {
  std::vector<at::Tensor> factors;
  bool has_grid = scalers.empty();
  for (const Scaler& scaler : scalers) {
    factors.push_back(own_nodes(scaler.factor, field_nodes, nodes));
    const int64_t size = factors.back().size(kGrid);
    AIFS_CHECK(size == 1 || size == field_nodes, "scaler '", scaler.name, "' has ", size,
               " values over the grid for ", field_nodes, " errors");
    has_grid = has_grid || scaler.acts_on(kGrid);
  }
  AIFS_CHECK(has_grid, "a loss with scalers needs one over the grid");
  return factors;
}

at::Tensor reduce_nodes(const at::Tensor& value, const NodeSlice& nodes) {
  const at::Tensor partial =
      value.sum({kTime, kGrid}, /*keepdim=*/false, at::kDouble)
          .mean(at::IntArrayRef{kBatch, 1});  // 1: the ensemble, now that time is gone
  return nodes.sum_over_ranks(partial);
}

}  // namespace

at::Tensor apply_scalers(at::Tensor field, const std::vector<Scaler>& scalers,
                         const NodeSlice& nodes) {
  for (const at::Tensor& factor : own_factors(scalers, field.size(kGrid), nodes))
    field = field * factor;
  return field;
}

at::Tensor reduce_field(const at::Tensor& field, OverVariables reduction, const NodeSlice& nodes) {
  at::Tensor value = field;
  if (reduction == OverVariables::kMean) value = field.mean(kVariable);
  if (reduction == OverVariables::kSum) value = field.sum(kVariable);
  return reduce_nodes(value, nodes);
}

at::Tensor PointwiseLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                     OverVariables reduction) const {
  AIFS_CHECK(prediction.dim() == 5 && target.dim() == 5, "a loss needs (B, T, E, N, V) fields");
  const bool squares = error.is_square && !ignore_nans;
  at::Tensor value;
  if (squares && reduction != OverVariables::kKeep && prediction.is_cuda()) {
    const std::vector<at::Tensor> factors = own_factors(scalers, prediction.size(kGrid), nodes);
    const double count = static_cast<double>(prediction.size(kVariable));
    const double scale = reduction == OverVariables::kMean ? 1.0 / count : 1.0;
    if (squared_errors_fit(prediction, target, factors))
      value = reduce_nodes(squared_errors(prediction, target, factors, scale), nodes);
  }
  if (!value.defined())
    value =
        reduce_field(apply_scalers(field(prediction, target), scalers, nodes), reduction, nodes);
  return error.takes_root ? value.sqrt() : value;
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

}  // namespace aifs::train
