// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scalers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::train {

namespace {

at::Tensor to_tensor(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).to(at::kFloat);
}

double level_weight(double level, const LevelScalerOptions& options) {
  const double scaled = options.slope * level;
  switch (options.kind) {
    case LevelScaling::kRelu:
      return std::max(options.y_intercept, scaled);
    case LevelScaling::kLinear:
      return scaled + options.y_intercept;
    case LevelScaling::kPolynomial:
      return scaled * scaled + options.y_intercept;
    case LevelScaling::kNone:
      return 1.0;
  }
  return 1.0;
}

}  // namespace

bool Scaler::acts_on(Axis axis) const {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

void LevelScalerOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"weight as a function of the pressure level"});
  b.number("y_intercept", y_intercept, {}, {"smallest weight (relu) or constant term"});
  b.number("slope", slope, {}, {"growth of the weight with pressure", "1/hPa"});
  b.text_list("parameters", parameters, {"parameters whose levels are weighted"});
}

void LeadTimeDecayOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"how the weight falls with the lead time"});
  b.number("decay", decay, {.min = 0.0}, {"how fast it falls"});
  b.number("max_lead_time_hours", max_lead_time_hours, {.min = 1e-9},
           {"lead time that counts as 1", "h"});
  b.boolean("inverse", inverse, {"let it grow instead"});
  b.number_list("hours", hours, {.min = 0.0},
                {"lead times of the output times; empty: multiples of data.timestep", "h"});
}

at::Tensor normalise_weights(const at::Tensor& weights, WeightNorm norm) {
  switch (norm) {
    case WeightNorm::kNone:
      return weights;
    case WeightNorm::kUnitSum:
      return weights / weights.sum();
    case WeightNorm::kUnitMean:
      return weights / weights.mean();
  }
  return weights;
}

at::Tensor level_weights(const std::vector<std::string>& outputs,
                         const LevelScalerOptions& options) {
  std::vector<double> weights;
  for (const std::string& name : outputs) {
    const data::VariableName variable = data::split_variable_name(name);
    const bool weighted =
        variable.level >= 0 && std::find(options.parameters.begin(), options.parameters.end(),
                                         variable.parameter) != options.parameters.end();
    weights.push_back(weighted ? level_weight(static_cast<double>(variable.level), options) : 1.0);
  }
  return to_tensor(weights);
}

at::Tensor variable_weights(const std::vector<std::string>& outputs,
                            const std::map<std::string, double>& weights, const std::string& path) {
  std::vector<double> values;
  for (const std::string& name : outputs) {
    const data::VariableName variable = data::split_variable_name(name);
    if (variable.level >= 0 && weights.count(name) != 0) {
      throw ConfigError(concat(path, ".variable_weights.", name),
                        "weights are given per parameter, not per level",
                        concat("write '", variable.parameter, "', and weigh levels by loss.level"));
    }
    const auto own = weights.find(variable.parameter);
    const auto fallback = weights.find("default");
    values.push_back(own != weights.end()        ? own->second
                     : fallback != weights.end() ? fallback->second
                                                 : 1.0);
  }
  return to_tensor(values);
}

at::Tensor tendency_weights(const data::VariableTable& variables,
                            const data::Statistics& statistics, const data::Statistics& tendencies,
                            int power, bool skip_first_column) {
  std::vector<double> weights;
  for (const int64_t column : variables.output_columns()) {
    const auto v = static_cast<size_t>(column);
    if (variables.role(column) != data::Role::kPrognostic || (column == 0 && skip_first_column)) {
      weights.push_back(1.0);
      continue;
    }
    const double ratio = statistics.stdev[v] / tendencies.stdev[v];
    if (!std::isfinite(ratio)) {
      throw DataError(
          concat("variable '", variables.names()[v], "' has stdev ", statistics.stdev[v], ", and ",
                 tendencies.stdev[v], " among the statistics_tendencies: no loss weight follows"),
          "leave the tendency scaler out of loss.scalers");
    }
    weights.push_back(std::pow(ratio, power));
  }
  return to_tensor(weights);
}

at::Tensor variable_mask(const std::vector<std::string>& outputs,
                         const std::vector<std::string>& masked, bool invert,
                         const std::string& path) {
  std::vector<double> weights(outputs.size(), invert ? 0.0 : 1.0);
  for (size_t i = 0; i < masked.size(); ++i) {
    bool found = false;
    for (size_t v = 0; v < outputs.size(); ++v) {
      const bool is_parameter = data::split_variable_name(outputs[v]).parameter == masked[i];
      if (outputs[v] != masked[i] && !is_parameter) continue;
      weights[v] = invert ? 1.0 : 0.0;
      found = true;
    }
    if (!found) {
      throw ConfigError(concat(path, ".masked_variables.", i),
                        concat("'", masked[i], "' is not predicted"),
                        nearest_names(masked[i], outputs));
    }
  }
  return to_tensor(weights);
}

at::Tensor time_weights(const std::vector<double>& weights, int64_t times,
                        const std::string& path) {
  if (weights.empty()) {
    return at::full({times}, 1.0 / static_cast<double>(times), at::kFloat);
  }
  if (static_cast<int64_t>(weights.size()) != times) {
    throw ConfigError(path + ".time_weights",
                      concat("has ", weights.size(), " values for ", times, " output times"));
  }
  return normalise_weights(to_tensor(weights), WeightNorm::kUnitSum);
}

at::Tensor lead_time_weights(const std::vector<double>& lead_times_hours,
                             const LeadTimeDecayOptions& options) {
  const at::Tensor relative = to_tensor(lead_times_hours) / options.max_lead_time_hours;
  const at::Tensor decayed = options.decay * relative;
  at::Tensor weights;
  switch (options.kind) {
    case LeadTimeDecay::kLinear:
      weights = options.inverse ? decayed : 1.0 - decayed;
      break;
    case LeadTimeDecay::kExponential:
      weights = at::exp(-decayed);
      if (options.inverse) weights = 1.0 - weights;
      break;
  }
  return normalise_weights(weights, WeightNorm::kUnitSum);
}

at::Tensor reweighted_nodes(const at::Tensor& weights, const at::Tensor& mask, double fraction) {
  AIFS_CHECK(fraction > 0.0 && fraction < 1.0, "a share of ", fraction);
  const at::Tensor num_masked = mask.sum();
  AIFS_CHECK(num_masked.item<int64_t>() > 0, "no node is in the mask");
  const at::Tensor rest = weights.masked_select(at::logical_not(mask)).sum();
  return weights.masked_fill(mask, fraction / (1.0 - fraction) * rest / num_masked);
}

at::Tensor spectral_weights(int64_t modes, int64_t repeats) {
  return at::full({modes * repeats}, 1.0 / static_cast<double>(modes), at::kFloat);
}

Scaler over_axes(std::string name, const at::Tensor& values, std::vector<Axis> axes) {
  AIFS_CHECK(
      values.dim() == static_cast<int64_t>(axes.size()) && std::is_sorted(axes.begin(), axes.end()),
      "scaler '", name, "' of shape ", values.sizes(), " over ", axes.size(), " axes");
  std::vector<int64_t> shape(5, 1);
  for (size_t i = 0; i < axes.size(); ++i)
    shape[static_cast<size_t>(axes[i])] = values.size(static_cast<int64_t>(i));
  return {std::move(name), values.reshape(shape), std::move(axes)};
}

Scaler over_axis(std::string name, const at::Tensor& values, Axis axis) {
  return over_axes(std::move(name), values, {axis});
}

}  // namespace aifs::train
