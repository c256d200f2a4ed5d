// SPDX-License-Identifier: Apache-2.0
#include "train/loss/loss_setup.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "train/loss/multi_scale_loss.h"

namespace aifs::train {

namespace {

constexpr int64_t kUnknownModes = -1;  // of ScalerPlace

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
    const std::vector<Axis> axes = options.scaler(name, path + ".scalers").kind->axes();
    if (weights.defined() || std::find(axes.begin(), axes.end(), kTime) == axes.end()) continue;
    weights = build_scaler(options, name, inputs, kUnknownModes).factor.reshape({-1});
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

// Throws ConfigError for a loss that would count cells which the network does not decide.
void check_output_mask(const LossTermOptions& term, const std::string& path,
                       const LossOptions& options, const LossInputs& inputs) {
  if (!inputs.output_mask.defined() || term.kind->is_of_waves()) return;
  for (const std::string& name : term.scalers)
    if (options.scaler(name, path + ".scalers").kind->grid_use() == GridUse::kNodes) return;
  throw ConfigError(path + ".scalers",
                    "has no weights of nodes, so that cells outside model.output_mask would count",
                    "name \"node_weights\", which are 0 there");
}

}  // namespace

void check_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, inputs.target_names);
  for (const auto& [path, term] : options.effective_terms()) {
    check_output_mask(term, path, options, inputs);
    term.kind->check(inputs, path);
    for (const std::string& name : term.scalers) {
      const GridUse use = options.scaler(name, path + ".scalers").kind->grid_use();
      if (use == GridUse::kNone) build_scaler(options, name, inputs, kUnknownModes);
    }
  }
}

Scaler build_scaler(const LossOptions& options, const std::string& name, const LossInputs& inputs,
                    int64_t modes) {
  const ScalerOptions scaler = options.scaler(name, "loss.scalers");
  return scaler.kind->make(name, {inputs, options.scaler_path(name), modes});
}

LossPtr build_loss(const LossOptions& options, const LossInputs& inputs) {
  options.check_names(inputs.variables, inputs.target_names);
  std::vector<WeightedSum::Part> parts;
  for (const auto& [path, term] : options.effective_terms()) {
    check_output_mask(term, path, options, inputs);
    parts.push_back({build_term(term, path, options, inputs), term.weight});
  }
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
