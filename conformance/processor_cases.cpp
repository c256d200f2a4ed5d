// SPDX-License-Identifier: Apache-2.0
// Data processors: normalisers, imputers (also chained with a normaliser) and boundings.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "anemoi/part_sections.h"
#include "conformance/anemoi_form.h"
#include "conformance/cases.h"
#include "conformance/model_setup.h"
#include "conformance/tensors.h"
#include "data/options.h"

namespace aifs::conformance {

namespace {

struct ProcessorFile {
  const Json& json;
  SafetensorsFile tensors;
  data::VariableTable variables;
  data::Statistics statistics;

  explicit ProcessorFile(const CaseFile& file)
      : json(file.json),
        tensors(file.tensors()),
        variables(variables_of(file.json)),
        statistics(statistics_of(tensors, "input/statistics_")) {}

  const Json& config(const std::string& name) const { return json["cases"][name].at("config"); }
};

// The processors of a training's configuration with one of a class of Anemoi's.
data::NamedDataset processors_of(const ProcessorFile& file, const std::string& class_name,
                                 const Json& arguments) {
  const Json processors{{"one", {{"_target_", class_name}, {"config", arguments}}}};
  data::NamedDataset options;
  config::read(
      options,
      section_of(anemoi::import_processor_section(processors, file.variables.names()), "data"),
      "data", {});
  return options;
}

at::Tensor columns_of(const at::Tensor& fields, const std::vector<int64_t>& columns) {
  return fields.index_select(-1, at::tensor(columns, at::kLong));
}

std::span<float> span_of(const at::Tensor& x) {
  return {x.data_ptr<float>(), static_cast<size_t>(x.numel())};
}

at::Tensor normalised(const data::Normaliser& normaliser, const at::Tensor& physical) {
  at::Tensor result = physical.clone();
  normaliser.forward(span_of(result));
  return result;
}

// Fields (..., columns.size()) of some data columns, back in physical units.
at::Tensor denormalised(const data::Normaliser& normaliser, const at::Tensor& fields,
                        const std::vector<int64_t>& columns) {
  at::Tensor result = fields.clone();
  const std::span<float> values = span_of(result);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = normaliser.inverse(values[i], columns[i % columns.size()]);
  return result;
}

std::vector<int64_t> all_columns(const data::VariableTable& variables) {
  std::vector<int64_t> columns;
  for (int64_t v = 0; v < variables.num_variables(); ++v)
    columns.push_back(v);
  return columns;
}

// Compares exactly, if the file has the tensor.
void compare_exactly(const ProcessorFile& file, const std::string& tensor, const at::Tensor& ours,
                     Comparison& comparison) {
  if (!file.tensors.contains(tensor)) return;
  comparison.add(tensor.substr(tensor.find('/') + 1),
                 max_difference(ours, read_tensor(file.tensors, tensor)), 0.0);
}

void check_normaliser(const ProcessorFile& file, const std::string& name, Comparison& comparison) {
  const data::NormaliserOptions options =
      processors_of(file, "InputNormalizer", file.config(name)).normalizer;
  data::Statistics statistics = file.statistics;
  const data::VariableTable& variables = file.variables;
  const auto normaliser = data::Normaliser::create(variables.names(), statistics, options);
  const auto compare = [&](const std::string& what, const at::Tensor& ours) {
    compare_exactly(file, name + "/" + what, ours, comparison);
  };
  compare("mul", at::tensor(at::ArrayRef<float>(normaliser.mul)));
  compare("add", at::tensor(at::ArrayRef<float>(normaliser.add)));
  const at::Tensor forward = normalised(normaliser, read_tensor(file.tensors, "input/x"));
  compare("forward", forward);
  compare("forward_model_input", columns_of(forward, variables.input_columns()));
  compare("inverse", denormalised(normaliser, forward, all_columns(variables)));
  compare("inverse_model_output",
          denormalised(normaliser, columns_of(forward, variables.output_columns()),
                       variables.output_columns()));
  const std::map<std::string, std::vector<double>> after{{"mean", statistics.mean},
                                                         {"stdev", statistics.stdev},
                                                         {"minimum", statistics.minimum},
                                                         {"maximum", statistics.maximum}};
  for (const auto& [statistic, values] : after)
    compare("statistics_after_" + statistic, at::tensor(values, at::kDouble));
}

// (V) bool: which variables some rule names.
at::Tensor filled_variables(const data::VariableTable& variables,
                            const std::vector<data::ImputeRule>& rules) {
  std::set<std::string> named;
  for (const data::ImputeRule& rule : rules)
    named.insert(rule.variables.begin(), rule.variables.end());
  std::vector<int64_t> filled;
  for (const std::string& name : variables.names())
    filled.push_back(named.count(name) != 0);
  return at::tensor(filled, at::kLong).to(at::kBool);
}

struct Imputed {
  at::Tensor filled;          // (B, T, E, N, V)
  at::Tensor first_time_nan;  // (B, N, V) u8
};

Imputed impute(const data::Imputer& imputer, const at::Tensor& x) {
  Imputed result{x.clone(), at::zeros({x.size(0), x.size(3), x.size(4)}, at::kByte)};
  const data::SampleShape shape{x.size(1), x.size(2), x.size(3), x.size(4)};
  for (int64_t b = 0; b < x.size(0); ++b) {
    const at::Tensor mask = result.first_time_nan[b];
    imputer.forward(span_of(result.filled[b]), shape,
                    {mask.data_ptr<uint8_t>(), static_cast<size_t>(mask.numel())});
  }
  return result;
}

// Puts NaN back into physical fields (B, T, E, N, columns.size()).
at::Tensor with_nan(const at::Tensor& fields, const std::vector<int64_t>& columns,
                    const at::Tensor& first_time_nan, const data::VariableTable& variables) {
  at::Tensor result = fields.clone();
  const data::SampleShape shape{fields.size(1), fields.size(2), fields.size(3), fields.size(4)};
  for (int64_t b = 0; b < fields.size(0); ++b) {
    const at::Tensor mask = first_time_nan[b];
    data::restore_nan(span_of(result[b]), shape, columns,
                      {mask.data_ptr<uint8_t>(), static_cast<size_t>(mask.numel())}, variables);
  }
  return result;
}

void check_imputer(const ProcessorFile& file, const std::string& name, Comparison& comparison) {
  const data::VariableTable& variables = file.variables;
  const std::vector<data::ImputeRule> rules =
      processors_of(file, file.json["cases"][name].at("class").get<std::string>(),
                    file.config(name))
          .imputer;
  const data::Imputer imputer(variables.names(), file.statistics, rules);
  const auto compare = [&](const std::string& what, const at::Tensor& ours) {
    compare_exactly(file, name + "/" + what, ours, comparison);
  };
  const Imputed imputed = impute(imputer, read_tensor(file.tensors, "input/x_with_nan"));
  const std::vector<int64_t>& in = variables.input_columns();
  const std::vector<int64_t>& out = variables.output_columns();
  const auto restored = [&](const at::Tensor& fields, const std::vector<int64_t>& columns) {
    return with_nan(fields, columns, imputed.first_time_nan, variables);
  };
  compare("forward", imputed.filled);
  compare("loss_mask", columns_of(1 - imputed.first_time_nan.to(at::kFloat), out));
  const std::string locations = name + "/nan_locations_first_time";
  if (file.tensors.contains(locations)) {
    // The reference notes those of variables that it does not fill, too.
    const at::Tensor ours = columns_of(imputed.first_time_nan, in).to(at::kBool);
    const at::Tensor filled = columns_of(filled_variables(variables, rules), in);
    comparison.require(at::equal(ours, read_tensor(file.tensors, locations).logical_and(filled)),
                       "nan_locations_first_time");
  }

  // The chain: imputer, then a mean-std normaliser; the inverse in the other order.
  data::Statistics statistics = file.statistics;
  const auto normaliser = data::Normaliser::create(variables.names(), statistics, {});
  const at::Tensor chained = normalised(normaliser, imputed.filled);
  compare("chain_forward", chained);
  const std::vector<int64_t> all = all_columns(variables);
  compare("chain_inverse_all_variables", restored(denormalised(normaliser, chained, all), all));
  if (file.tensors.contains(name + "/chain_prediction")) {
    const at::Tensor prediction = read_tensor(file.tensors, name + "/chain_prediction");
    compare("chain_inverse_prediction", restored(denormalised(normaliser, prediction, out), out));
  }
  // The network's own tensors; the newest state without gaps stands for a prediction.
  compare("inference_forward", columns_of(imputed.filled, in));
  const at::Tensor x = read_tensor(file.tensors, "input/x");
  compare("inference_inverse_prediction",
          restored(columns_of(x.narrow(1, x.size(1) - 1, 1), out), out));
}

// The boundings of a case, applied in order. `names` are cases with a class and its arguments.
void check_boundings(const ProcessorFile& file, const std::string& name,
                     const std::vector<std::string>& names, Comparison& comparison) {
  model::OutputVariables outputs;
  outputs.names = file.variables.output_names();
  for (const int64_t column : file.variables.output_columns()) {
    outputs.mean.push_back(file.statistics.mean[static_cast<size_t>(column)]);
    outputs.stdev.push_back(file.statistics.stdev[static_cast<size_t>(column)]);
  }
  model::ParameterSet parameters(at::kFloat, /*seed=*/1);
  const model::ParameterScope root(parameters);
  const at::Tensor prediction =
      read_tensor(file.tensors, "input/prediction").set_requires_grad(true);
  at::Tensor y = prediction;
  for (const std::string& part : names) {
    const Json& json = file.json["cases"].at(part);
    const model::BoundingOptions options =
        bounding_options(json.at("class").get<std::string>(), json.at("arguments"));
    y = model::Bounding(root / part, options, outputs, part).forward(y);
  }
  compare_exactly(file, name + "/forward", y.detach(), comparison);
  (y * read_tensor(file.tensors, "input/cotangent")).sum().backward();
  compare_exactly(file, name + "/grad", prediction.grad(), comparison);
  if (parameters.contains(name + ".norm_min_val")) {
    compare_exactly(file, name + "/norm_min_val", parameters.at(name + ".norm_min_val").tensor,
                    comparison);
  }
}

// One mapped column of a field with all of them.
void check_remapper(const ProcessorFile& file, const std::string& name, Comparison& comparison) {
  constexpr double kLimit = 1e-6;  // of a result, or of what moves it as far as its argument moves
  const Json& json = file.json["cases"].at(name);
  const auto method = json.at("method").get<std::string>();
  const Json arguments{{method, {json.at("variable")}},
                       {"method_kwargs", {{method, json.at("arguments")}}}};
  const data::Remapper remapper(file.variables.names(),
                                processors_of(file, "Remapper", arguments).remapper);
  const auto column = json.at("column").get<int64_t>();
  at::Tensor fields = read_tensor(file.tensors, json.at("input").get<std::string>());
  const auto check = [&](const std::string& what, const auto& map) {
    constexpr double kStep = 1e-3;
    at::Tensor moved = fields.clone();
    moved.select(-1, column).mul_(1.0 + kStep);
    map(moved);
    map(fields);
    const at::Tensor result = fields.select(-1, column);
    const at::Tensor expected = read_tensor(file.tensors, name + "/" + what);
    const at::Tensor slope = at::nan_to_num((moved.select(-1, column) - result).abs() / kStep);
    const at::Tensor size = at::maximum(expected.abs(), slope);
    const at::Tensor scale = at::where(size == 0, at::ones({}), size);
    comparison.add(what, max_difference(result / scale, expected / scale), kLimit);
  };
  check("forward", [&](at::Tensor& rows) { remapper.forward(span_of(rows)); });
  check("inverse",
        [&](at::Tensor& rows) { remapper.inverse(span_of(rows), all_columns(file.variables)); });
}

// The statistics of a variable make a threshold one of normalised values.
double normalised_threshold(const ProcessorFile& file, const std::string& method,
                            const std::string& variable, double value) {
  data::NormaliserOptions options;
  const auto& table = EnumNames<data::NormMethod>::table;
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& entry) { return method == entry.second; });
  if (found == table.end()) throw NotSupported("normaliser " + method);
  const std::vector<std::string>& names = file.variables.names();
  const auto v =
      static_cast<size_t>(std::find(names.begin(), names.end(), variable) - names.begin());
  const data::Statistics& s = file.statistics;
  switch (found->first) {
    case data::NormMethod::kMeanStd:
      return (value - s.mean[v]) / s.stdev[v];
    case data::NormMethod::kStd:
      return value / s.stdev[v];
    case data::NormMethod::kMinMax:
      return (value - s.minimum[v]) / (s.maximum[v] - s.minimum[v]);
    case data::NormMethod::kMax:
      return value / s.maximum[v];
    case data::NormMethod::kNone:
      break;
  }
  return value;
}

// The fields of such a case are normalised, so thresholds are brought to their units.
std::vector<data::PostRule> post_rules(const ProcessorFile& file, const Json& json) {
  Json arguments = json.at("config");
  const auto normalizer = arguments.value("normalizer", std::string("none"));
  arguments.erase("normalizer");
  const data::NamedDataset options =
      processors_of(file, json.at("class").get<std::string>(), arguments);
  std::vector<data::PostRule> rules;
  for (const data::PostRule& rule : options.postprocessor) {
    if (rule.method != data::PostMethod::kThreshold) {
      rules.push_back(rule);
      continue;
    }
    for (const std::string& variable : rule.variables) {
      rules.push_back(rule);
      rules.back().variables = {variable};
      rules.back().value = normalised_threshold(file, normalizer, variable, rule.value);
    }
  }
  return rules;
}

void check_post_processor(const ProcessorFile& file, const std::string& name,
                          Comparison& comparison) {
  const Json& json = file.json["cases"].at(name);
  const data::PostProcessor post(file.variables.output_names(), post_rules(file, json));
  at::Tensor fields = read_tensor(file.tensors, json.at("input").get<std::string>());
  post.apply(span_of(fields));
  compare_exactly(file, name + "/inverse", fields, comparison);
}

// A bounding that the package fails to build; we refuse it. Its class and arguments stand in the
// case or, of thresholds with another normaliser, in its name.
void check_failing(const std::string& name, const Json& json, Comparison& comparison) {
  const std::string prefix = "bound_normalized_relu_with_";
  if (!json.contains("arguments") && !name.starts_with(prefix))
    throw NotUnderstood("the case does not say what fails in the package");
  try {
    if (json.contains("arguments")) {
      bounding_options(json.at("class").get<std::string>(), json["arguments"]);
    } else {
      bounding_options("NormalizedReluBounding", {{"variables", {"any"}},
                                                  {"min_val", {0.0}},
                                                  {"normalizer", {name.substr(prefix.size())}}});
    }
  } catch (const ConfigError&) {
    comparison.require(true, "refused");
    return;
  }
  comparison.require(false, "the bounding should be refused");
}

void check_processor(const ProcessorFile& file, const std::string& name, Comparison& comparison) {
  const Json& json = file.json["cases"].at(name);
  require_described(json);
  if (json.contains("error")) return check_failing(name, json, comparison);
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "normalizer") return check_normaliser(file, name, comparison);
  if (kind == "imputer") return check_imputer(file, name, comparison);
  if (kind == "bounding") {
    const auto order = json.value("order", std::vector<std::string>{name});
    return check_boundings(file, name, order, comparison);
  }
  if (kind == "remapper") return check_remapper(file, name, comparison);
  if (kind == "postprocessor") return check_post_processor(file, name, comparison);
  throw NotSupported(kind);
}

}  // namespace

void run_processor_cases(const CaseFile& file, Report& report) {
  const ProcessorFile processors(file);
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("processor", name, [&, processor = name](Comparison& comparison) {
      check_processor(processors, processor, comparison);
    });
  }
}

}  // namespace aifs::conformance
