// SPDX-License-Identifier: Apache-2.0
#include "conformance/loss_file.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "conformance/report.h"
#include "conformance/tensors.h"

namespace aifs::conformance {

at::Tensor LossGrid::read(const std::string& tensor, at::ScalarType dtype) const {
  return read_tensor(file.tensors, prefix + tensor, dtype);
}

bool LossGrid::contains(const std::string& tensor) const {
  return file.tensors.contains(prefix + tensor);
}

graph::NodeSet LossGrid::nodes() const {
  const char* tensor = contains("latlon_rad") ? "latlon_rad" : "node_latlon_rad";
  const at::Tensor columns = read(tensor, at::kFloat).t().contiguous();
  const float* values = columns.const_data_ptr<float>();
  graph::NodeSet nodes;
  nodes.name = "data";
  nodes.lat_rad.assign(values, values + columns.size(1));
  nodes.lon_rad.assign(values + columns.size(1), values + 2 * columns.size(1));
  return nodes;
}

namespace {

using train::Scaler;

train::WeightNorm weight_norm(const Json& options) {
  if (!options.contains("norm") || options["norm"].is_null()) return train::WeightNorm::kNone;
  const auto name = options["norm"].get<std::string>();
  if (name == "l1") return train::WeightNorm::kUnitSum;
  for (const auto& [norm, known] : EnumNames<train::WeightNorm>::table) {
    if (name == known) return norm;
  }
  throw NotSupported("norm " + name);
}

at::Tensor level_scaler(const LossFile& file, const Json& options, train::LevelScaling kind) {
  require_known_keys(options, {"class", "group", "y_intercept", "slope", "norm"});
  if (options.value("group", std::string("pl")) != "pl") {
    throw NotSupported("variable group " + options["group"].get<std::string>());
  }
  train::LevelScalerOptions level;
  level.kind = kind;
  level.y_intercept = options.value("y_intercept", level.y_intercept);
  level.slope = options.value("slope", level.slope);
  return train::level_weights(file.variables.output_names(), level);
}

at::Tensor tendency_scaler(const LossFile& file, const Json& options, int power) {
  require_known_keys(options, {"class", "norm"});
  data::Statistics statistics, tendencies;
  statistics.stdev = file.tensors.doubles("input/stdev");
  tendencies.stdev = file.tensors.doubles("input/stdev_tendency");
  return train::tendency_weights(file.variables, statistics, tendencies, power,
                                 /*skip_first_column=*/true);
}

at::Tensor lead_time_scaler(const Json& options) {
  require_known_keys(options, {"class", "output_lead_times", "decay_factor", "max_lead_time",
                               "decay_type", "inverse", "norm"});
  train::LeadTimeDecayOptions decay;
  const auto kind = options.value("decay_type", std::string("linear"));
  if (kind == "exponential") {
    decay.kind = train::LeadTimeDecay::kExponential;
  } else if (kind != "linear") {
    throw NotSupported("decay " + kind);
  }
  decay.decay = options.at("decay_factor").get<double>();
  decay.max_lead_time_hours = options.at("max_lead_time").get<double>();
  decay.inverse = options.value("inverse", false);
  return train::lead_time_weights(options.at("output_lead_times").get<std::vector<double>>(),
                                  decay);
}

at::Tensor node_attribute(const LossFile& file, const std::string& name) {
  return read_tensor(file.tensors, "input/" + name).reshape({-1});
}

at::Tensor node_scaler(const LossFile& file, const Json& options) {
  require_known_keys(options, {"class", "nodes_attribute_name", "inverse", "norm"});
  const at::Tensor values =
      node_attribute(file, options.at("nodes_attribute_name").get<std::string>());
  return options.value("inverse", false) ? at::logical_not(values).to(at::kFloat)
                                         : values.to(at::kFloat);
}

at::Tensor reweighted_scaler(const LossFile& file, const Json& options) {
  require_known_keys(options, {"class", "nodes_attribute_name", "scaling_mask_attribute_name",
                               "weight_frac_of_total", "norm"});
  return train::reweighted_nodes(
      node_attribute(file, options.at("nodes_attribute_name").get<std::string>()),
      node_attribute(file, options.at("scaling_mask_attribute_name").get<std::string>())
          .to(at::kBool),
      options.at("weight_frac_of_total").get<double>());
}

at::Tensor time_scaler(const LossFile& file, const Json& options) {
  require_known_keys(options, {"class", "weights", "norm"});
  const auto weights = options.at("weights").get<std::vector<double>>();
  if (weight_norm(options) == train::WeightNorm::kUnitSum) {
    return train::time_weights(weights, file.tensors.at("input/target").shape.at(train::kTime));
  }
  return at::tensor(weights, at::kDouble).to(at::kFloat);
}

// The values of one scaler before its norm, with one dimension per axis.
at::Tensor scaler_values(const LossFile& file, const Json& options) {
  const auto name = options.at("class").get<std::string>();
  const std::vector<std::string> outputs = file.variables.output_names();
  if (name == "GeneralVariableLossScaler") {
    require_known_keys(options, {"class", "weights", "norm"});
    return train::variable_weights(outputs,
                                   options.at("weights").get<std::map<std::string, double>>());
  }
  using train::LevelScaling;
  if (name == "ReluVariableLevelScaler") return level_scaler(file, options, LevelScaling::kRelu);
  if (name == "LinearVariableLevelScaler") {
    return level_scaler(file, options, LevelScaling::kLinear);
  }
  if (name == "PolynomialVariableLevelScaler") {
    return level_scaler(file, options, LevelScaling::kPolynomial);
  }
  if (name == "NoVariableLevelScaler") return level_scaler(file, options, LevelScaling::kNone);
  if (name == "VariableMaskingLossScaler") {
    require_known_keys(options, {"class", "variables", "invert", "norm"});
    return train::variable_mask(outputs, texts(options.at("variables")),
                                options.value("invert", false));
  }
  if (name == "StdevTendencyScaler") return tendency_scaler(file, options, 1);
  if (name == "VarTendencyScaler") return tendency_scaler(file, options, 2);
  if (name == "NaNMaskScaler") {
    require_known_keys(options, {"class", "norm"});
    return read_tensor(file.tensors, "input/nan_mask");
  }
  if (name == "GraphNodeAttributeScaler") return node_scaler(file, options);
  if (name == "ReweightedGraphNodeAttributeScaler") return reweighted_scaler(file, options);
  if (name == "SpectralDimensionScaler") {
    require_known_keys(options, {"class", "n_spectral_modes", "spectral_dims", "norm"});
    return train::spectral_weights(options.at("n_spectral_modes").get<int64_t>(),
                                   options.value("spectral_dims", int64_t{1}));
  }
  if (name == "UniformTimeStepScaler") {
    require_known_keys(options, {"class", "norm"});
    return train::time_weights({}, file.tensors.at("input/target").shape.at(train::kTime));
  }
  if (name == "TimeStepScaler") return time_scaler(file, options);
  if (name == "LeadTimeDecayScaler") return lead_time_scaler(options);
  throw NotSupported("scaler " + name);
}

train::Axis axis_named(const std::string& name) {
  static const std::map<std::string, train::Axis> axes{{"batch", train::kBatch},
                                                       {"time", train::kTime},
                                                       {"ensemble", train::kEnsemble},
                                                       {"grid", train::kGrid},
                                                       {"variable", train::kVariable}};
  const auto found = axes.find(name);
  if (found == axes.end()) throw NotSupported("dimension " + name);
  return found->second;
}

// A stored scaler without options.
Scaler stored_scaler(const LossGrid& grid, const std::string& name, at::ScalarType dtype) {
  const at::Tensor values = grid.read("scaler/" + name, dtype);
  if (values.dim() == 3) {
    return train::over_axes(name, values, {train::kBatch, train::kGrid, train::kVariable});
  }
  if (values.dim() != 1) throw NotSupported("scaler " + name + " of several dimensions");
  const LossFile& file = grid.file;
  AxisLengths lengths{.variable = file.variables.num_outputs()};
  for (const char* fields : {"batch", "target", "pred"}) {
    if (!grid.contains(fields)) continue;
    const std::vector<int64_t>& shape = file.tensors.at(grid.prefix + fields).shape;
    lengths.grid = shape.at(train::kGrid);
    lengths.time = file.json.value("times_out", shape.at(train::kTime));
    break;
  }
  return train::over_axis(name, values, axis_of_scaler(name, values.size(0), lengths));
}

}  // namespace

train::Axis axis_of_scaler(const std::string& name, int64_t length, const AxisLengths& lengths) {
  const bool spectral = name.starts_with("spectral");
  const train::Axis named = spectral || name.starts_with("node") ? train::kGrid
                            : name.starts_with("time") || name.starts_with("lead")
                                ? train::kTime
                                : train::kVariable;
  const auto length_of = [&](train::Axis axis) {
    return axis == train::kGrid   ? lengths.grid
           : axis == train::kTime ? lengths.time
                                  : lengths.variable;
  };
  if (spectral || length == 1 || length == length_of(named)) return named;
  for (const train::Axis axis : {train::kGrid, train::kVariable, train::kTime}) {
    if (length == length_of(axis)) return axis;
  }
  return train::kGrid;
}

Scaler make_scaler(const LossGrid& grid, const std::string& name, at::ScalarType dtype) {
  const LossFile& file = grid.file;
  if (!file.has_scaler_options()) return stored_scaler(grid, name, dtype);
  const Json& json = file.json["scalers"].at(name);
  std::vector<train::Axis> axes;
  for (const std::string& dimension : texts(json.at("dimensions")))
    axes.push_back(axis_named(dimension));
  const Json& options = json.at("options");
  const at::Tensor values =
      train::normalise_weights(scaler_values(file, options), weight_norm(options));
  return train::over_axes(name, values.to(dtype), axes);
}

// The scalers of a list in which "*" stands for all of the file and "!name" leaves one out.
std::vector<std::string> selected_scalers(const LossFile& file, const Json& list) {
  std::vector<std::string> names = texts(list);
  const auto listed = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!listed("*")) return names;
  std::vector<std::string> selected;
  for (const auto& [name, scaler] : file.json.at("scalers").items()) {
    if (!listed("!" + name)) selected.push_back(name);
  }
  return selected;
}

}  // namespace aifs::conformance
