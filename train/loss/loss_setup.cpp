// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_setup.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/time.h"
#include "train/loss/multi_scale_loss.h"

namespace aifs::train {

namespace {

at::Tensor tendency_scaler(const ScalerOptions& options, const LossInputs& inputs, int power) {
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

at::Tensor node_attribute(const LossInputs& inputs, const std::string& name,
                          const std::string& path) {
  const auto found = inputs.nodes.attributes.find(name);
  if (found == inputs.nodes.attributes.end()) {
    std::vector<std::string> known;
    for (const auto& [attribute, values] : inputs.nodes.attributes)
      known.push_back(attribute);
    throw ConfigError(path, concat("the data nodes have no attribute '", name, "'"),
                      nearest_names(name, known));
  }
  return at::tensor(at::ArrayRef<float>(found->second.values), at::kFloat);
}

at::Tensor node_weights(const ScalerOptions& options, const LossInputs& inputs,
                        const std::string& path) {
  at::Tensor weights = node_attribute(inputs, options.node_attribute, path + ".node_attribute");
  if (options.node_inverse) weights = (weights == 0.0).to(at::kFloat);
  if (options.node_mask.empty()) return weights;
  return reweighted_nodes(weights,
                          node_attribute(inputs, options.node_mask, path + ".node_mask") != 0.0,
                          options.node_mask_share);
}

at::Tensor time_scaler(const ScalerOptions& options, const LossInputs& inputs,
                       const std::string& path) {
  if (options.time_weights.empty() || options.norm == WeightNorm::kUnitSum)
    return time_weights(options.time_weights, inputs.times_out, path);
  return at::tensor(options.time_weights, at::kDouble).to(at::kFloat);
}

at::Tensor lead_time_scaler(const ScalerOptions& options, const LossInputs& inputs) {
  std::vector<double> hours = options.lead_time.hours;
  for (int64_t t = 1; options.lead_time.hours.empty() && t <= inputs.times_out; ++t)
    hours.push_back(static_cast<double>(t * inputs.timestep_s) / 3600.0);
  return lead_time_weights(hours, options.lead_time);
}

// The weights before their norm, with one dimension for each axis.
at::Tensor scaler_values(const ScalerOptions& options, const std::string& path,
                         const LossInputs& inputs, int64_t modes) {
  const std::vector<std::string> outputs = inputs.variables.output_names();
  switch (options.kind) {
    case ScalerKind::kPressureLevel:
      return level_weights(outputs, options.level);
    case ScalerKind::kGeneralVariable:
      return variable_weights(outputs, options.variable_weights, path);
    case ScalerKind::kNodeWeights:
      return node_weights(options, inputs, path);
    case ScalerKind::kTimeSteps:
      return time_scaler(options, inputs, path);
    case ScalerKind::kStdevTendency:
      return tendency_scaler(options, inputs, 1);
    case ScalerKind::kVarTendency:
      return tendency_scaler(options, inputs, 2);
    case ScalerKind::kLeadTimeDecay:
      return lead_time_scaler(options, inputs);
    case ScalerKind::kVariableMask:
      return variable_mask(outputs, options.masked_variables, options.mask_inverse, path);
    case ScalerKind::kSpectral:
      return spectral_weights(options.modes > 0 ? options.modes : modes, options.repeats);
    case ScalerKind::kValues: {
      const at::Tensor values = at::tensor(options.values, at::kDouble);
      return options.shape.empty() ? values : values.reshape(options.shape);
    }
    case ScalerKind::kNanMask:
      break;
  }
  throw Error(concat("no values of the scaler '", enum_name(options.kind), "'"));
}

// Names of what the columns of a target are.
std::vector<std::string> target_names(const LossInputs& inputs) {
  return inputs.target_names.empty() ? inputs.variables.output_names() : inputs.target_names;
}

std::vector<ColumnPair> column_pairs(const LossTermOptions& term, const LossInputs& inputs) {
  const bool all = term.variables.empty() && term.target_variables.empty();
  if (all && inputs.target_names.empty()) return {};
  const std::vector<std::string> predicted =
      term.variables.empty() ? inputs.variables.output_names() : term.variables;
  const std::vector<std::string>& compared =
      term.target_variables.empty() ? predicted : term.target_variables;
  const std::vector<std::string> targets = target_names(inputs);
  std::vector<ColumnPair> pairs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto found = std::find(targets.begin(), targets.end(), compared[i]);
    AIFS_CHECK(found != targets.end(), "no target column '", compared[i], "'");
    pairs.push_back({inputs.variables.find_output(predicted[i]), found - targets.begin()});
  }
  return pairs;
}

ElementaryOptions elementary_options(const LossTermOptions& term, const LossOptions& options,
                                     const LossInputs& inputs, int64_t modes) {
  ElementaryOptions result;
  result.columns = column_pairs(term, inputs);
  result.ignore_nans = term.ignore_nans;
  for (const std::string& name : term.scalers)
    result.scalers.push_back(build_scaler(options, name, inputs, modes));
  return result;
}

// A loss of the aggregates over time, whose differences the first scaler over time weighs.
LossPtr of_aggregates(LossPtr loss, const LossTermOptions& term, const std::string& path,
                      const LossOptions& options, const LossInputs& inputs) {
  at::Tensor weights;
  for (const std::string& name : term.scalers) {
    const std::vector<Axis> axes = options.scaler(name, path + ".scalers").acting_axes();
    if (weights.defined() || std::find(axes.begin(), axes.end(), kTime) == axes.end()) continue;
    weights = build_scaler(options, name, inputs).factor.reshape({-1});
  }
  return std::make_shared<TimeAggregateLoss>(term.time_aggregates(path), std::move(loss), weights);
}

std::vector<SparseRowsPtr> build_smoothers(const ScalesOptions& s, const LossInputs& inputs) {
  if (s.weights.empty()) return {};
  std::vector<SparseRowsPtr> smoothers;
  if (!s.files.empty()) {
    smoothers = smoothers_of(s.files, inputs.nodes.num_nodes());
  } else {
    smoothers = smoothers_on(inputs.nodes, !s.smoothers.empty()
                                               ? s.smoothers
                                               : smoother_series(s.num_scales, s.base_neighbours,
                                                                 s.base_sigma, s.scale_factor));
  }
  for (SparseRowsPtr& smoother : smoothers)
    smoother = inputs.used(smoother);
  return smoothers;
}

LossPtr build_term(const LossTermOptions& term, const std::string& path, const LossOptions& options,
                   const LossInputs& inputs) {
  std::vector<SparseRowsPtr> smoothers = build_smoothers(term.scales, inputs);
  LossPtr loss = term.kind->make({.inputs = inputs, .path = path, .elementary = [&](int64_t modes) {
                                    return elementary_options(term, options, inputs, modes);
                                  }});
  const auto of_scales = [&](const LossPtr& inner) -> LossPtr {
    if (smoothers.empty()) return inner;
    return std::make_shared<MultiScaleLoss>(std::move(smoothers), term.scales.weights, inner);
  };
  if (term.scales.of_aggregates) loss = of_scales(loss);
  if (!term.time_aggregation.empty()) loss = of_aggregates(loss, term, path, options, inputs);
  return term.scales.of_aggregates ? loss : of_scales(loss);
}

}  // namespace

void check_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, inputs.target_names);
  for (const auto& [path, term] : options.effective_terms()) {
    term.kind->check(inputs, path);
    for (const std::string& name : term.scalers) {
      const ScalerKind kind = options.scaler(name, path + ".scalers").kind;
      const bool of_nodes = kind == ScalerKind::kNodeWeights || kind == ScalerKind::kSpectral;
      if (!of_nodes) build_scaler(options, name, inputs);
    }
  }
}

Scaler build_scaler(const LossOptions& options, const std::string& name, const LossInputs& inputs,
                    int64_t modes) {
  const ScalerOptions scaler = options.scaler(name, "loss.scalers");
  if (scaler.kind == ScalerKind::kNanMask) return {name, {}, scaler.acting_axes()};
  const at::Tensor values = scaler_values(scaler, options.scaler_path(name), inputs, modes);
  const at::Tensor normalised =
      scaler.kind == ScalerKind::kTimeSteps && scaler.norm == WeightNorm::kUnitSum
          ? values  // they are already
          : normalise_weights(values, scaler.norm);
  return over_axes(name, normalised.to(inputs.device, inputs.dtype), scaler.acting_axes());
}

LossPtr build_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, inputs.target_names);
  std::vector<WeightedSum::Part> parts;
  for (const auto& [path, term] : options.effective_terms())
    parts.push_back({build_term(term, path, options, inputs), term.weight});
  if (parts.size() == 1 && parts[0].weight == 1.0) return parts[0].loss;
  return std::make_shared<WeightedSum>(std::move(parts));
}

Scaler nan_mask_scaler(const at::Tensor& nan_mask, const data::VariableTable& variables,
                       at::ScalarType dtype) {
  const at::Tensor columns =
      at::tensor(variables.output_columns(), at::kLong).to(nan_mask.device());
  const at::Tensor valid = 1 - nan_mask.index_select(-1, columns).to(dtype);
  return over_axes(kNanMaskName, valid, {kBatch, kGrid, kVariable});
}

LossCall call_of_batch(const NodeSlice& nodes, const at::Tensor& nan_mask,
                       const data::VariableTable& variables, const at::Tensor& values) {
  LossCall call;
  call.nodes = nodes;
  if (nan_mask.defined()) {
    call.nan_mask = nan_mask_scaler(nan_mask.to(values.device()), variables, values.scalar_type());
  }
  return call;
}

}  // namespace aifs::train
