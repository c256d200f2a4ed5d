// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scaler_options.h"

#include <algorithm>

#include "core/check.h"
#include "core/time.h"

namespace aifs::train {

namespace {

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names{"batch", "time", "ensemble", "grid", "variable"};
  return names;
}

// The keys that a kind reads.
std::vector<std::string> used_keys(ScalerKind kind) {
  std::vector<std::string> keys{"kind"};
  const auto also = [&keys](std::initializer_list<const char*> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  if (kind != ScalerKind::kNanMask) also({"norm"});  // the mask comes with the batch
  switch (kind) {
    case ScalerKind::kPressureLevel:
      also({"level"});
      break;
    case ScalerKind::kGeneralVariable:
      also({"variable_weights"});
      break;
    case ScalerKind::kNodeWeights:
      also({"node_attribute", "node_mask", "node_mask_share", "node_inverse"});
      break;
    case ScalerKind::kTimeSteps:
      also({"time_weights"});
      break;
    case ScalerKind::kStdevTendency:
    case ScalerKind::kVarTendency:
      also({"tendency"});
      break;
    case ScalerKind::kLeadTimeDecay:
      also({"lead_time"});
      break;
    case ScalerKind::kVariableMask:
      also({"masked_variables", "mask_inverse"});
      break;
    case ScalerKind::kSpectral:
      also({"modes", "repeats"});
      break;
    case ScalerKind::kValues:
      also({"axes", "shape", "values"});
      break;
    case ScalerKind::kNanMask:
      break;
  }
  return keys;
}

}  // namespace

void TendencyScalerOptions::bind(config::Binder& b) {
  b.text("timestep", timestep,
         {"time difference whose tendency statistics are used; empty takes data.timestep"});
  b.boolean("skip_first_column", skip_first_column,
            {"leave the variable in dataset column 0 at weight 1, as Anemoi's release does"});
}

void TendencyScalerOptions::validate(const std::string& path) const {
  if (timestep.empty()) return;
  try {
    parse_duration(timestep);
  } catch (const Error& error) {
    throw ConfigError(path + ".timestep", error.what(), error.hint());
  }
}

void ScalerSettings::bind(config::Binder& b) {
  b.section("level", level, {"weights of pressure levels (scaler pressure_level)"});
  b.number_map("variable_weights", variable_weights, {.min = 0.0},
               {"weight per parameter, and \"default\" (scaler general_variable)"});
  b.text_list("masked_variables", masked_variables,
              {"outputs, or parameters with all levels, that weigh 0 (scaler variable_mask)"});
  b.boolean("mask_inverse", mask_inverse, {"let all others weigh 0 instead"});
  b.text("node_attribute", node_attribute,
         {"attribute of the data nodes that weighs them (scaler node_weights)"});
  b.text("node_mask", node_mask,
         {"attribute that marks nodes which weigh the same and have a fixed share; empty: none"});
  b.number("node_mask_share", node_mask_share, {.min = 1e-9, .max = 1.0 - 1e-9},
           {"their share of the total weight"});
  b.number_list("time_weights", time_weights, {.min = 0.0},
                {"weights of the output times of one step; empty weighs them equally"});
  b.section("lead_time", lead_time, {"weights by lead time (scaler lead_time_decay)"});
  b.section("tendency", tendency, {"weights from tendency statistics"});
}

void ScalerSettings::validate(const std::string& path) const {
  if (!time_weights.empty() &&
      std::all_of(time_weights.begin(), time_weights.end(), [](double w) { return w == 0.0; })) {
    throw ConfigError(path + ".time_weights", "are all 0: nothing is left to learn from");
  }
  tendency.validate(path + ".tendency");
}

void ScalerOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"what the weights are made of"});
  b.choice("norm", norm, {"normalisation of the weights"});
  b.boolean("node_inverse", node_inverse,
            {"node_weights: 1 where the attribute is 0, and 0 elsewhere"});
  b.integer("modes", modes, {.min = 0},
            {"spectral: number of waves that share the weight 1; 0: as many as the loss has"});
  b.integer("repeats", repeats, {.min = 1}, {"spectral: how often the waves are repeated"});
  b.text_list("axes", axes,
              {"values: the dimensions of errors on which they act, in this order: batch, time, "
               "ensemble, grid, variable"});
  b.integer_list("shape", shape, {.min = 1},
                 {"values: how many there are along each axis; empty: there is one axis"});
  b.number_list("values", values, {}, {"values: the weights, the last axis runs fastest"});
  ScalerSettings::bind(b);
}

void ScalerOptions::validate(const std::string& path) const {
  config::refuse_unused(*this, used_keys(kind), path, concat("kind ", enum_name(kind)));
  ScalerSettings::validate(path);
  if (kind != ScalerKind::kValues) return;
  int64_t last = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto found = std::find(axis_names().begin(), axis_names().end(), axes[i]);
    if (found == axis_names().end()) {
      throw ConfigError(concat(path, ".axes.", i), concat("'", axes[i], "' is no axis"),
                        nearest_names(axes[i], axis_names()));
    }
    if (found - axis_names().begin() <= last) {
      throw ConfigError(concat(path, ".axes"), "must be in the order of the dimensions of errors",
                        "batch, time, ensemble, grid, variable");
    }
    last = found - axis_names().begin();
  }
  if (axes.empty()) throw ConfigError(path + ".axes", "names none: on what do the values act?");
  const bool is_line = shape.empty() && axes.size() == 1;
  int64_t wanted = 1;
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(wanted, length, &wanted))
      throw ConfigError(path + ".shape", "is larger than any tensor");
  }
  if (!is_line && shape.size() != axes.size()) {
    throw ConfigError(path + ".shape",
                      concat("has ", shape.size(), " lengths for ", axes.size(), " axes"));
  }
  if (values.empty() || (!is_line && wanted != std::ssize(values))) {
    throw ConfigError(path + ".values",
                      concat("are ", values.size(),
                             is_line ? std::string() : concat(", the shape needs ", wanted)));
  }
}

std::vector<Axis> ScalerOptions::acting_axes() const {
  switch (kind) {
    case ScalerKind::kNodeWeights:
    case ScalerKind::kSpectral:
      return {kGrid};
    case ScalerKind::kTimeSteps:
    case ScalerKind::kLeadTimeDecay:
      return {kTime};
    case ScalerKind::kNanMask:
      return {kBatch, kGrid, kVariable};
    case ScalerKind::kValues:
      break;
    default:
      return {kVariable};
  }
  std::vector<Axis> acting;
  for (const std::string& name : axes) {
    const auto found = std::find(axis_names().begin(), axis_names().end(), name);
    acting.push_back(static_cast<Axis>(found - axis_names().begin()));
  }
  return acting;
}

}  // namespace aifs::train
