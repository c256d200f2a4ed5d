// SPDX-License-Identifier: Apache-2.0
#include "train/loss/variable_scalers.h"

#include "core/check.h"

namespace aifs::train {

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
  return weights_of(values);
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
  return weights_of(weights);
}

void GeneralVariableKind::bind_settings(config::Binder& b) {
  b.number_map("variable_weights", variable_weights, {.min = 0.0},
               {"weight per parameter, and \"default\""});
}

void GeneralVariableKind::check_names(const std::vector<std::string>& outputs,
                                      const std::string& path) const {
  train::variable_weights(outputs, variable_weights, path);
}

at::Tensor GeneralVariableKind::weights(const ScalerPlace& place) const {
  return train::variable_weights(place.inputs.variables.output_names(), variable_weights,
                                 place.path);
}

void VariableMaskKind::bind_settings(config::Binder& b) {
  b.text_list("masked_variables", masked_variables,
              {"outputs, or parameters with all levels, that weigh 0"});
  b.boolean("mask_inverse", mask_inverse, {"let all others weigh 0 instead"});
}

void VariableMaskKind::check_names(const std::vector<std::string>& outputs,
                                   const std::string& path) const {
  variable_mask(outputs, masked_variables, mask_inverse, path);
}

const char* VariableMaskKind::key_to_use() const {
  return masked_variables.empty() ? nullptr : "masked_variables";
}

at::Tensor VariableMaskKind::weights(const ScalerPlace& place) const {
  return variable_mask(place.inputs.variables.output_names(), masked_variables, mask_inverse,
                       place.path);
}

}  // namespace aifs::train
