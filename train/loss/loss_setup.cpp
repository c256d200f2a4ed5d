// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_setup.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "core/time.h"
#include "train/loss/multi_scale_loss.h"

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

at::Tensor node_weights(const LossOptions& options, const LossInputs& inputs) {
  at::Tensor weights = node_attribute(inputs, options.node_attribute, "loss.node_attribute");
  if (!options.node_mask.empty()) {
    weights = reweighted_nodes(weights,
                               node_attribute(inputs, options.node_mask, "loss.node_mask") != 0.0,
                               options.node_mask_share);
  }
  return normalise_weights(weights, options.node_norm);
}

at::Tensor lead_time_scaler(const LossOptions& options, const LossInputs& inputs) {
  std::vector<double> hours;
  for (int64_t t = 1; t <= inputs.times_out; ++t)
    hours.push_back(static_cast<double>(t * inputs.timestep_s) / 3600.0);
  return lead_time_weights(hours, options.lead_time);
}

// `modes`: errors over the "grid" of a spectral loss.
Scaler build_scaler(ScalerKind kind, const LossOptions& options, const LossInputs& inputs,
                    int64_t modes) {
  const std::string name = enum_name(kind);
  const std::vector<std::string> outputs = inputs.variables.output_names();
  switch (kind) {
    case ScalerKind::kPressureLevel:
      return over_axis(name, level_weights(outputs, options.level), kVariable);
    case ScalerKind::kGeneralVariable:
      return over_axis(name, variable_weights(outputs, options.variable_weights), kVariable);
    case ScalerKind::kNodeWeights:
      return over_axis(name, node_weights(options, inputs), kGrid);
    case ScalerKind::kTimeSteps:
      return over_axis(name, time_weights(options.time_weights, inputs.times_out), kTime);
    case ScalerKind::kStdevTendency:
      return over_axis(name, tendency_scaler(options, inputs, 1), kVariable);
    case ScalerKind::kVarTendency:
      return over_axis(name, tendency_scaler(options, inputs, 2), kVariable);
    case ScalerKind::kLeadTimeDecay:
      return over_axis(name, lead_time_scaler(options, inputs), kTime);
    case ScalerKind::kVariableMask:
      return over_axis(name, variable_mask(outputs, options.masked_variables, options.mask_inverse),
                       kVariable);
    case ScalerKind::kSpectral:
      return over_axis(name, spectral_weights(modes, 1), kGrid);
    case ScalerKind::kNanMask:
      break;
  }
  return {name, {}, {kBatch, kGrid, kVariable}};  // comes with the batch
}

std::vector<ColumnPair> column_pairs(const LossTermOptions& term, const LossInputs& inputs) {
  const std::vector<std::string>& targets =
      term.target_variables.empty() ? term.variables : term.target_variables;
  std::vector<ColumnPair> pairs;
  for (size_t i = 0; i < term.variables.size(); ++i) {
    pairs.push_back({inputs.variables.find_output(term.variables[i]),
                     inputs.variables.find_output(targets[i])});
  }
  return pairs;
}

ElementaryOptions elementary_options(const LossTermOptions& term, const std::string& path,
                                     const LossOptions& options, const LossInputs& inputs,
                                     int64_t modes) {
  ElementaryOptions result;
  result.columns = column_pairs(term, inputs);
  result.ignore_nans = term.ignore_nans;
  for (const ScalerKind kind : term.scaler_kinds(path + ".scalers")) {
    Scaler scaler = build_scaler(kind, options, inputs, modes);
    if (scaler.factor.defined()) scaler.factor = scaler.factor.to(inputs.device, inputs.dtype);
    result.scalers.push_back(std::move(scaler));
  }
  return result;
}

LossPtr build_term(const LossTermOptions& term, const std::string& path, const LossOptions& options,
                   const LossInputs& inputs) {
  const LossPlace place{.inputs = inputs, .path = path, .elementary = [&](int64_t modes) {
                          return elementary_options(term, path, options, inputs, modes);
                        }};
  LossPtr loss = term.kind->make(place);
  if (!term.time_aggregation.empty()) {
    at::Tensor weights;
    for (const ScalerKind kind : term.scaler_kinds(path)) {
      if (kind != ScalerKind::kTimeSteps && kind != ScalerKind::kLeadTimeDecay) continue;
      const at::Tensor own = build_scaler(kind, options, inputs, 0).factor.reshape({-1});
      weights = weights.defined() ? weights * own : own;
    }
    if (weights.defined()) weights = weights.to(inputs.device, inputs.dtype);
    loss = std::make_shared<TimeAggregateLoss>(term.time_aggregates(path), loss, weights);
  }
  if (!term.scales.weights.empty()) {
    const ScalesOptions& s = term.scales;
    const auto made = [&] {
      return smoothers_on(inputs.nodes, smoother_series(s.num_scales, s.base_neighbours,
                                                        s.base_sigma, s.scale_factor));
    };
    loss = std::make_shared<MultiScaleLoss>(
        s.files.empty() ? made() : smoothers_of(s.files, inputs.nodes.num_nodes()), s.weights,
        loss);
  }
  return loss;
}

}  // namespace

void check_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables);
  for (const auto& [path, term] : options.effective_terms()) {
    term.kind->check(inputs, path);
    for (const ScalerKind kind : term.scaler_kinds(path + ".scalers")) {
      const bool of_nodes = kind == ScalerKind::kNodeWeights || kind == ScalerKind::kSpectral;
      if (!of_nodes) build_scaler(kind, options, inputs, 1);
    }
  }
}

LossPtr build_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables);
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
