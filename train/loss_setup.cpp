// SPDX-License-Identifier: Apache-2.0
#include "train/loss_setup.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

at::Tensor tendency_scaler(const LossOptions& options, const LossInputs& inputs, int power) {
  const int64_t delta_s = options.tendency.timestep.empty()
                              ? inputs.timestep_s
                              : parse_duration(options.tendency.timestep);
  const auto found = inputs.tendencies.find(delta_s);
  if (found == inputs.tendencies.end()) {
    std::string known;
    for (const auto& [delta, statistics] : inputs.tendencies) {
      known += concat(known.empty() ? "" : ", ", format_duration(delta));
    }
    throw DataError(
        concat("the dataset has no tendency statistics over ", format_duration(delta_s)),
        known.empty() ? "it has none at all; leave the tendency scaler out of loss.scalers"
                      : concat("it has them over ", known));
  }
  return tendency_weights(inputs.variables, inputs.statistics, found->second, power,
                          options.tendency.skip_first_column);
}

Scaler build_scaler(ScalerKind kind, const LossOptions& options, const LossInputs& inputs) {
  const std::string name = enum_name(kind);
  const std::vector<std::string> outputs = inputs.variables.output_names();
  switch (kind) {
    case ScalerKind::kPressureLevel:
      return over_axis(name, level_weights(outputs, options.level), kVariable);
    case ScalerKind::kGeneralVariable:
      return over_axis(name, variable_weights(outputs, options.variable_weights), kVariable);
    case ScalerKind::kNodeWeights: {
      AIFS_CHECK(!inputs.area_weights.empty(), "the graph has no area weights");
      const at::Tensor weights = at::tensor(at::ArrayRef<float>(inputs.area_weights), at::kFloat);
      at::Tensor own = normalise_weights(weights, options.node_norm);
      if (inputs.sum_over_ranks) own = own.narrow(0, inputs.nodes.begin, inputs.nodes.size());
      return over_axis(name, own, kGrid);
    }
    case ScalerKind::kTimeSteps:
      return over_axis(name, time_weights(options.time_weights, inputs.times_out), kTime);
    case ScalerKind::kStdevTendency:
      return over_axis(name, tendency_scaler(options, inputs, 1), kVariable);
    case ScalerKind::kVarTendency:
      return over_axis(name, tendency_scaler(options, inputs, 2), kVariable);
    case ScalerKind::kNanMask:
      break;
  }
  throw Error("the NaN mask depends on the batch");
}

}  // namespace

bool has_nan_mask(const LossOptions& options) {
  const std::vector<ScalerKind> kinds = options.scaler_kinds();
  return std::find(kinds.begin(), kinds.end(), ScalerKind::kNanMask) != kinds.end();
}

PointwiseLoss build_loss(const LossOptions& options, const LossInputs& inputs) {
  PointwiseLoss loss;
  loss.kind = options.kind;
  loss.huber_delta = options.huber_delta;
  loss.ignore_nans = options.ignore_nans;
  loss.sum_over_ranks = inputs.sum_over_ranks;
  for (const ScalerKind kind : options.scaler_kinds()) {
    if (kind == ScalerKind::kNanMask) continue;
    Scaler scaler = build_scaler(kind, options, inputs);
    scaler.factor = scaler.factor.to(inputs.device, inputs.dtype);
    loss.scalers.push_back(std::move(scaler));
  }
  return loss;
}

Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype) {
  const at::Tensor columns =
      at::tensor(variables.output_columns(), at::kLong).to(nan_mask.device());
  const at::Tensor valid = 1 - nan_mask.index_select(-1, columns).to(dtype);
  return over_axes(enum_name(ScalerKind::kNanMask), valid, {kBatch, kGrid, kVariable});
}

PointwiseLoss with_nan_mask(const PointwiseLoss& loss, const LossOptions& options,
                            const Scaler& mask) {
  const std::vector<ScalerKind> kinds = options.scaler_kinds();
  const auto place = std::find(kinds.begin(), kinds.end(), ScalerKind::kNanMask) - kinds.begin();
  PointwiseLoss masked = loss;
  masked.scalers.insert(masked.scalers.begin() + place, mask);
  return masked;
}

PointwiseLoss loss_of_batch(const PointwiseLoss& loss, const LossOptions& options,
                            const at::Tensor& nan_mask, const data::VariableTable& variables,
                            const at::Tensor& values) {
  if (!nan_mask.defined() || !has_nan_mask(options)) return loss;
  const at::Tensor mask = nan_mask.to(values.device());
  return with_nan_mask(loss, options, nan_mask_scaler(mask, variables, values.scalar_type()));
}

}  // namespace aifs::train
