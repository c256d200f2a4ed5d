// SPDX-License-Identifier: Apache-2.0
// Losses and the scalers that weigh them. Scalers are computed from their options and compared with
// the stored ones; the losses use the computed ones.
#include <ATen/ATen.h>

#include "app/conformance/cases.h"
#include "app/conformance/model_setup.h"
#include "app/conformance/tensors.h"

namespace aifs::conformance {

namespace {

using train::CombinedLoss;
using train::OverVariables;
using train::Scaler;

// Limits of the reference data: values and gradients (of the largest element) in both precisions.
constexpr double kValue = 1e-6, kGradient = 1e-6, kValueF64 = 1e-12, kGradientF64 = 1e-10;
constexpr double kTiny = 1e-300;  // of a gradient that is zero everywhere
// Two units in the last place: a norm may add its weights up in another order.
constexpr double kScaler = 2.4e-7;

struct LossFile {
  const Json& json;
  SafetensorsFile tensors;
  data::VariableTable variables;

  explicit LossFile(const CaseFile& file)
      : json(file.json), tensors(file.tensors()), variables(variables_of(file.json)) {}
};

std::vector<std::string> texts(const Json& json) {
  return json.get<std::vector<std::string>>();
}

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
  const auto kind = options.at("decay_type").get<std::string>();
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
    require_known_keys(options, {"class"});
    return read_tensor(file.tensors, "input/nan_mask");
  }
  if (name == "GraphNodeAttributeScaler") {
    require_known_keys(options, {"class", "nodes_attribute_name", "norm"});
    const auto attribute = options.at("nodes_attribute_name").get<std::string>();
    return read_tensor(file.tensors, "input/" + attribute).reshape({-1});
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

Scaler make_scaler(const LossFile& file, const std::string& name, at::ScalarType dtype) {
  if (!file.json.contains("scalers")) throw NotSupported("scalers on more than one grid");
  const Json& json = file.json["scalers"].at(name);
  std::vector<train::Axis> axes;
  for (const std::string& dimension : texts(json.at("dimensions")))
    axes.push_back(axis_named(dimension));
  const Json& options = json.at("options");
  const at::Tensor values =
      train::normalise_weights(scaler_values(file, options), weight_norm(options));
  return train::over_axes(name, values.to(dtype), axes);
}

void check_scaler(const LossFile& file, const std::string& name, Comparison& comparison) {
  const at::Tensor values = make_scaler(file, name, at::kFloat).factor;
  if (file.json["scalers"][name]["options"].at("class") == "NaNMaskScaler") {
    // The stored one is a placeholder; the mask belongs to the batch.
    comparison.require(at::logical_or(values == 0, values == 1).all().item<bool>(),
                       "the mask holds other values than 0 and 1");
    return;
  }
  const at::Tensor stored = read_tensor(file.tensors, "scaler/" + name).reshape(values.sizes());
  const at::Tensor scale = at::where(stored == 0, at::ones({}), stored);
  comparison.add(name, max_difference(values / scale, stored / scale), kScaler);
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

// A loss with its fields in one precision.
struct LossCase {
  CombinedLoss loss;
  at::Tensor prediction;  // model-output columns
  at::Tensor target;      // all dataset columns
};

train::LossKind loss_kind(const std::string& name) {
  using K = train::LossKind;
  static const std::map<std::string, K> kinds{
      {"MSELoss", K::kMse},     {"RMSELoss", K::kRmse},       {"MAELoss", K::kMae},
      {"HuberLoss", K::kHuber}, {"LogCoshLoss", K::kLogCosh}, {"WeightedMSELoss", K::kMse}};
  const auto found = kinds.find(name);
  if (found == kinds.end()) throw NotSupported("loss " + name);
  return found->second;
}

// Predicted columns and the dataset columns they are compared with.
std::vector<CombinedLoss::ColumnPair> column_pairs(const LossFile& file, const Json& config) {
  const std::vector<std::string> predicted = config.contains("predicted_variables")
                                                 ? texts(config["predicted_variables"])
                                                 : file.variables.output_names();
  const std::vector<std::string> target =
      config.contains("target_variables") ? texts(config["target_variables"]) : predicted;
  AIFS_CHECK(predicted.size() == target.size(), "predicted and target variables are no pairs");
  const std::vector<std::string>& names = file.variables.names();
  std::vector<CombinedLoss::ColumnPair> pairs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), target[i]);
    const int64_t output = file.variables.find_output(predicted[i]);
    AIFS_CHECK(found != names.end() && output >= 0, "'", predicted[i], "' against '", target[i],
               "'");
    pairs.push_back({output, found - names.begin()});
  }
  return pairs;
}

CombinedLoss::Term make_term(const LossFile& file, const Json& config, const Json& scalers,
                             const std::optional<Scaler>& sample_weights, at::ScalarType dtype) {
  CombinedLoss::Term term;
  const auto name = config.at("class").get<std::string>();
  term.loss.kind = loss_kind(name);
  require_known_keys(config, {"class", "scalers", "delta", "ignore_nans", "predicted_variables",
                              "target_variables"});
  term.loss.huber_delta = config.value("delta", 1.0);
  term.loss.ignore_nans = config.value("ignore_nans", false);
  term.columns = column_pairs(file, config);
  // A weight per sample comes right after the error, as the first scaler does.
  if (name == "WeightedMSELoss" && sample_weights) term.loss.scalers.push_back(*sample_weights);
  for (const std::string& scaler : selected_scalers(file, scalers))
    term.loss.scalers.push_back(make_scaler(file, scaler, dtype));
  return term;
}

CombinedLoss make_loss(const LossFile& file, const Json& config,
                       const std::optional<Scaler>& sample_weights, at::ScalarType dtype) {
  const Json own_scalers = config.value("scalers", Json::array());
  CombinedLoss loss;
  if (config.at("class") != "CombinedLoss") {
    loss.terms.push_back(make_term(file, config, own_scalers, sample_weights, dtype));
    return loss;
  }
  require_known_keys(config, {"class", "losses", "loss_weights", "scalers"});
  const Json& parts = config.at("losses");
  const Json weights = config.value("loss_weights", Json());
  for (size_t i = 0; i < parts.size(); ++i) {
    loss.terms.push_back(
        make_term(file, parts[i], parts[i].value("scalers", own_scalers), sample_weights, dtype));
    if (!weights.is_null()) loss.terms.back().weight = weights.at(i).get<double>();
  }
  return loss;
}

LossCase make_case(const LossFile& file, const Json& json, at::ScalarType dtype) {
  const auto input = json.at("input").get<std::string>();
  const auto read = [&](const std::string& name) {
    return read_tensor(file.tensors, "input/" + name, dtype);
  };
  LossCase result;
  std::optional<Scaler> sample_weights;
  if (input == "det_weights") {
    sample_weights = {"sample_weights", read("sample_weights"), {train::kBatch, train::kEnsemble}};
  }
  result.loss = make_loss(file, json.at("config"), sample_weights, dtype);
  if (input == "det" || input == "det_weights") {
    result.prediction = read("pred");
  } else if (input == "det_nan") {
    result.prediction = read("pred_with_nan");
  } else if (input == "ens") {
    result.prediction = read("pred_ensemble");
  } else if (input == "ens2") {
    result.prediction = read("pred_ensemble").narrow(train::kEnsemble, 0, 2).contiguous();
  } else if (input == "ens_nan") {
    result.prediction = read("pred_ensemble_with_nan");
  } else {
    throw NotSupported("input " + input);
  }
  result.target = read(input.ends_with("_nan") ? "target_with_nan" : "target");
  return result;
}

at::Tensor gradient_of(const LossCase& c) {
  const at::Tensor prediction = c.prediction.clone().set_requires_grad(true);
  c.loss(prediction, c.target).backward();
  return prediction.grad();
}

// "1_and_3" -> {1, 3}.
std::vector<int64_t> columns_in(std::string text) {
  constexpr std::string_view kAnd = "_and_";
  std::vector<int64_t> columns;
  for (size_t at = text.find(kAnd); at != std::string::npos; at = text.find(kAnd)) {
    columns.push_back(std::stoll(text.substr(0, at)));
    text.erase(0, at + kAnd.size());
  }
  columns.push_back(std::stoll(text));
  return columns;
}

at::Tensor value_of(const LossCase& c, const std::string& quantity) {
  const std::string without = "value_without_", of_variables = "value_variables_";
  if (quantity == "value" || quantity == "value_f64") return c.loss(c.prediction, c.target);
  if (quantity == "value_per_variable") {
    return c.loss(c.prediction, c.target, OverVariables::kKeep);
  }
  if (quantity == "value_variables_summed") {
    return c.loss(c.prediction, c.target, OverVariables::kSum);
  }
  if (quantity == "value_without_variable_scalers") {
    return c.loss.without(train::kVariable)(c.prediction, c.target);
  }
  if (quantity.starts_with(without)) {
    return c.loss.without(quantity.substr(without.size()))(c.prediction, c.target);
  }
  if (quantity.starts_with(of_variables)) {
    return c.loss.for_columns(columns_in(quantity.substr(of_variables.size())))(c.prediction,
                                                                                c.target);
  }
  throw NotSupported("quantity " + quantity);
}

void check_loss(const LossFile& file, const std::string& name, Comparison& comparison) {
  const Json& json = file.json.at("cases").at(name);
  const LossCase single = make_case(file, json, at::kFloat);
  const LossCase twin = make_case(file, json, at::kDouble);
  for (const auto& [tensor, entry] : file.tensors.entries()) {
    if (!tensor.starts_with(name + "/")) continue;
    const std::string quantity = tensor.substr(name.size() + 1);
    const bool is_f64 = quantity.ends_with("_f64");
    const LossCase& c = is_f64 ? twin : single;
    const at::Tensor expected = read_tensor(file.tensors, tensor);
    if (quantity.starts_with("grad")) {
      comparison.add(quantity,
                     max_difference(gradient_of(c), expected) / std::max(max_abs(expected), kTiny),
                     is_f64 ? kGradientF64 : kGradient);
      continue;
    }
    const at::Tensor value = value_of(c, quantity);
    const at::Tensor scale = at::where(expected == 0, at::ones_like(expected), expected);
    comparison.add(quantity, max_difference(value / scale, expected / scale),
                   is_f64 ? kValueF64 : kValue);
  }
}

}  // namespace

void run_loss_cases(const CaseFile& file, Report& report) {
  const LossFile losses(file);
  const Json scalers = file.json.value("scalers", Json::object());
  for (const auto& [name, json] : scalers.items()) {
    report.run("scaler", name, [&, scaler = name](Comparison& comparison) {
      check_scaler(losses, scaler, comparison);
    });
  }
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("loss", name,
               [&, loss = name](Comparison& comparison) { check_loss(losses, loss, comparison); });
  }
}

}  // namespace aifs::conformance
