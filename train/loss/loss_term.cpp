// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_term.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

at::Tensor select(const at::Tensor& field, const std::vector<int64_t>& columns) {
  return field.index_select(kVariable, at::tensor(columns, at::kLong).to(field.device()));
}

at::Tensor zero_value(const at::Tensor& prediction, OverVariables reduction) {
  std::vector<int64_t> shape;
  if (reduction == OverVariables::kKeep) shape.push_back(prediction.size(kVariable));
  return at::zeros(shape, prediction.options().dtype(at::kDouble));
}

}  // namespace

LossCall without(Axis axis) {
  LossCall call;
  call.leaves_out = [axis](const Scaler& scaler) { return scaler.acts_on(axis); };
  return call;
}

LossCall without(const std::string& name) {
  LossCall call;
  call.leaves_out = [name](const Scaler& scaler) { return scaler.name == name; };
  return call;
}

std::vector<Scaler> ElementaryLoss::scalers_of(
    const LossCall& call, const std::optional<std::vector<int64_t>>& columns) const {
  std::vector<Scaler> scalers;
  for (const Scaler& own : options_.scalers) {
    if (call.leaves_out && call.leaves_out(own)) continue;
    const bool is_nan_mask = !own.factor.defined();
    if (is_nan_mask && !call.nan_mask) continue;  // this batch has none
    Scaler scaler = is_nan_mask ? *call.nan_mask : own;
    if (needs_all_nodes() && is_nan_mask && scaler.factor.size(kGrid) > 1) {
      scaler.factor = call.nodes.gather(scaler.factor);
    }
    if (columns && scaler.factor.size(kVariable) > 1) {
      scaler.factor = select(scaler.factor, *columns);
    }
    scalers.push_back(std::move(scaler));
  }
  return scalers;
}

at::Tensor ElementaryLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                      const LossCall& call) const {
  AIFS_CHECK(prediction.dim() == 5 && target.dim() == 5, "a loss needs (B, T, E, N, V) fields");
  std::vector<int64_t> predicted, compared;
  const auto wanted = [&](int64_t column) {
    return !call.columns ||
           std::find(call.columns->begin(), call.columns->end(), column) != call.columns->end();
  };
  if (options_.columns.empty() && call.columns) {
    predicted = compared = *call.columns;
  }
  for (const ColumnPair& pair : options_.columns) {
    if (!wanted(pair.predicted)) continue;
    predicted.push_back(pair.predicted);
    compared.push_back(pair.target);
  }
  const bool all = options_.columns.empty() && !call.columns;
  if (!all && predicted.empty()) return zero_value(prediction, call.over_variables);

  Fields fields;
  fields.prediction = all ? prediction : select(prediction, predicted);
  fields.target = all ? target : select(target, compared);
  fields.scalers = scalers_of(call, all ? std::nullopt : std::optional(predicted));
  fields.over_variables = call.over_variables;
  if (needs_all_nodes()) {
    fields.prediction = call.nodes.gather(fields.prediction);
    fields.target = call.nodes.gather(fields.target);
  } else {
    fields.nodes = call.nodes;
  }
  const at::Tensor result = value(fields).to(at::kDouble);
  if (all || call.over_variables != OverVariables::kKeep) return result;
  const at::Tensor index = at::tensor(predicted, at::kLong).to(prediction.device());
  return zero_value(prediction, OverVariables::kKeep).index_copy(0, index, result);
}

at::Tensor PointwiseTerm::value(const Fields& fields) const {
  const PointwiseLoss loss{.error = error_,
                           .ignore_nans = ignore_nans(),
                           .scalers = fields.scalers,
                           .nodes = fields.nodes};
  return loss(fields.prediction, fields.target, fields.over_variables);
}

at::Tensor WeightedSum::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                   const LossCall& call) const {
  at::Tensor sum = zero_value(prediction, call.over_variables);
  for (const Part& part : parts_)
    sum = sum + part.weight * (*part.loss)(prediction, target, call);
  return sum;
}

at::Tensor TimeAggregateLoss::of_kind(TimeAggregate kind, const at::Tensor& prediction,
                                      const at::Tensor& target, const LossCall& call) const {
  const auto of_time = [](const at::Tensor& field, auto&& function) {
    return function(field).unsqueeze(kTime);
  };
  const auto both = [&](auto&& function) {
    return (*loss_)(of_time(prediction, function), of_time(target, function), call);
  };
  switch (kind) {
    case TimeAggregate::kMean:
      return both([](const at::Tensor& x) { return x.mean(kTime); });
    case TimeAggregate::kMin:
      return both([](const at::Tensor& x) { return std::get<0>(x.min(kTime)); });
    case TimeAggregate::kMax:
      return both([](const at::Tensor& x) { return std::get<0>(x.max(kTime)); });
    case TimeAggregate::kDiff:
      break;
  }
  const at::Tensor moves = prediction.diff(1, kTime), true_moves = target.diff(1, kTime);
  at::Tensor sum;
  for (int64_t s = 0; s < moves.size(kTime); ++s) {
    const at::Tensor value =
        (*loss_)(moves.narrow(kTime, s, 1), true_moves.narrow(kTime, s, 1), call);
    const at::Tensor weighted = time_weights_.defined() ? value * time_weights_[s] : value;
    sum = sum.defined() ? sum + weighted : weighted;
  }
  return sum;
}

at::Tensor TimeAggregateLoss::operator()(const at::Tensor& prediction, const at::Tensor& target,
                                         const LossCall& call) const {
  AIFS_CHECK(prediction.size(kTime) > 1, "an aggregate over one output time");
  LossCall inner = call;
  inner.leaves_out = [&call](const Scaler& scaler) {
    return scaler.acts_on(kTime) || (call.leaves_out && call.leaves_out(scaler));
  };
  at::Tensor sum;
  for (const TimeAggregate kind : kinds_) {
    const at::Tensor value = of_kind(kind, prediction, target, inner);
    sum = sum.defined() ? sum + value : value;
  }
  return sum / static_cast<double>(kinds_.size());
}

}  // namespace aifs::train
