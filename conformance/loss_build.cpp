// SPDX-License-Identifier: Apache-2.0
#include "conformance/loss_build.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "anemoi/loss_section.h"
#include "conformance/anemoi_form.h"
#include "conformance/report.h"
#include "conformance/tensors.h"
#include "core/config.h"

namespace aifs::conformance {

namespace {

constexpr double kEnergyGradient = 1e-5, kExtendedGradient = 5e-6, kNoisyValue = 1e-3;
constexpr double kVariogramSquareValue = 1e-4;
// If small differences of large sums are added up, the float32 values of single variables are
// off by up to 4e-6 in the reference itself, against its float64 twin.
constexpr double kCancelling = 5e-6;
constexpr const char* kSampleWeights = "sample_weights";
constexpr int64_t kTimestep_s = 6 * 3600;  // of tendencies, which cases give for one only

// ------------------------------------------------------------------------------ exactness ---

void loosen(BuiltLoss& built, double value_limit, double gradient_limit) {
  built.value_limit = std::max(built.value_limit, value_limit);
  built.gradient_limit = std::max(built.gradient_limit, gradient_limit);
  built.per_variable_limit = std::max(built.per_variable_limit, value_limit);
}

double gradient_limit(const std::string& name) {
  static const std::map<std::string, double> limits{
      {"EnergyScoreLoss", kEnergyGradient},           {"GraphEnergyScoreLoss", kEnergyGradient},
      {"GraphEdgeEnergyScoreLoss", kEnergyGradient},  {"GraphEdgeCRPSLoss", kExtendedGradient},
      {"GraphVariogramScoreLoss", kExtendedGradient}, {"MultiscaleLossWrapper", kExtendedGradient},
      {"SpectralAMSELoss", kExtendedGradient},        {"PowerSpectrumLoss", kExtendedGradient},
      {"LogSpectralDistance", kExtendedGradient},     {"LogFFT2Distance", kExtendedGradient},
      {"FourierCorrelationLoss", kExtendedGradient},  {"SpectralCRPSLoss", kExtendedGradient}};
  const auto found = limits.find(name);
  return found == limits.end() ? 0.0 : found->second;
}

// Adds the limits that the reference's own rounding sets for a class.
void add_limits(const std::string& name, const Json& config, BuiltLoss& built) {
  const auto transform = config.value("transform", std::string("fft2d"));
  const bool is_variogram = name == "GraphVariogramScoreLoss";
  const bool is_square = is_variogram && config.value("p", 1.0) == 2.0;
  loosen(built, is_square ? kVariogramSquareValue : 0.0, gradient_limit(name));
  if (is_variogram || name == "SpectralAMSELoss")
    built.per_variable_limit = std::max(kCancelling, built.per_variable_limit);
  const bool is_correlation = name == "FourierCorrelationLoss";
  const bool is_ratio =
      is_correlation || name == "LogSpectralDistance" || name == "LogFFT2Distance";
  if (is_ratio && (transform == "octahedral_sht" || transform == "reduced_sht")) {
    loosen(built, kNoisyValue, 0.0);
    built.noisy = true;
    built.has_gradient = false;
  }
  // Real coefficients: the correlation is a sign.
  if (is_correlation && transform == "dct2d") built.has_gradient = false;
}

void add_limits_of_all(const Json& config, BuiltLoss& built) {
  if (!config.is_structured()) return;
  if (config.is_object() && config.contains("class"))
    add_limits(config["class"].get<std::string>(), config, built);
  for (const Json& part : config)
    add_limits_of_all(part, built);
}

// --------------------------------------------------------------------------------- options ---

// All names in lists of scalers.
void add_scaler_names(const Json& config, std::set<std::string>& names) {
  if (!config.is_structured()) return;
  if (config.is_object() && config.contains("scalers") && config["scalers"].is_array()) {
    for (const std::string& name : texts(config["scalers"]))
      names.insert(name);
  }
  for (const Json& part : config)
    add_scaler_names(part, names);
}

Json values_of(const at::Tensor& values, const std::vector<std::string>& axes) {
  const at::Tensor list = values.to(at::kDouble).contiguous();
  const double* data = list.const_data_ptr<double>();
  return Json{{"kind", "values"},
              {"axes", axes},
              {"shape", values.sizes().vec()},
              {"values", std::vector<double>(data, data + list.numel())}};
}

// A stored scaler without options.
Json stored_scaler(const LossGrid& grid, const std::string& name) {
  const at::Tensor values = read_tensor(grid.file.tensors, grid.prefix + "scaler/" + name);
  if (values.dim() == 3) return values_of(values, {"batch", "grid", "variable"});
  if (values.dim() != 1) throw NotSupported("scaler " + name + " of several dimensions");
  static const std::map<train::Axis, std::string> names{
      {train::kTime, "time"}, {train::kGrid, "grid"}, {train::kVariable, "variable"}};
  return values_of(values, {names.at(axis_of_scaler(name, values.size(0), grid.lengths()))});
}

// Throws NotSupported where a scaler acts on other dimensions than those of its kind.
void check_dimensions(const Json& dimensions, const train::ScalerOptions& scaler,
                      const std::string& name) {
  std::vector<train::Axis> axes;
  for (const std::string& dimension : texts(dimensions))
    axes.push_back(axis_named(dimension));
  if (axes != scaler.kind->axes())
    throw NotSupported(concat("scaler ", name, " over ", dimensions.dump()));
}

// Those of the case, or the groups of all cases without.
Json variable_groups(const Json& json) {
  return json.value("variable_groups", Json{{"pl", {"q", "t", "u", "v", "w", "z"}}});
}

// Returns the options that a case asks for, by way of a training's configuration.
train::LossOptions options_of(const LossGrid& grid, const Json& config,
                              const at::Tensor& sample_weights,
                              const std::vector<std::string>& also = {}) {
  const LossFile& file = grid.file;
  anemoi::LossRules rules{.keeps_names = true, .also = also, .has_data_edges = true};
  Json training{{"training_loss", anemoi_form(config)},
                {"variable_groups", variable_groups(file.json)}};
  Json stored = Json::object();
  if (file.has_scaler_options()) {
    for (const auto& [name, scaler] : file.json["scalers"].items())
      training["scalers"][name] = anemoi_form(*file.scaler_options(name));
  } else {
    std::set<std::string> names;
    add_scaler_names(config, names);
    for (const std::string& name : names)
      stored[name] = stored_scaler(grid, name);
  }
  if (sample_weights.defined()) {
    stored[kSampleWeights] = values_of(
        sample_weights.reshape({sample_weights.size(0), sample_weights.size(train::kEnsemble)}),
        {"batch", "ensemble"});
    rules.sample_weights = kSampleWeights;
  }
  for (const auto& [name, scaler] : stored.items())
    rules.defined_elsewhere.push_back(name);
  const anemoi::Imported imported = anemoi::import_loss_section(training, rules);
  Json section = section_of(imported, "loss");
  for (const auto& [name, scaler] : stored.items())
    section["named_scalers"][name] = scaler;
  train::LossOptions options;
  config::read(options, section, "loss", {});
  for (const auto& [name, scaler] : options.named_scalers) {
    if (stored.contains(name) || !file.json["scalers"].at(name).contains("dimensions")) continue;
    check_dimensions(file.json["scalers"][name]["dimensions"], scaler, name);
  }
  return options;
}

// ---------------------------------------------------------------------------------- inputs ---

std::vector<float> floats(const LossGrid& grid, const std::string& tensor) {
  const at::Tensor values = grid.read(tensor, at::kFloat).contiguous();
  const float* data = values.const_data_ptr<float>();
  return {data, data + values.numel()};
}

// The tensors of a grid that have one value for each of `count` nodes or edges.
std::map<std::string, graph::Attribute> attributes_of(const LossGrid& grid, int64_t count) {
  std::map<std::string, graph::Attribute> attributes;
  for (const auto& [tensor, entry] : grid.file.tensors.entries()) {
    if (!tensor.starts_with(grid.prefix)) continue;
    const std::string name = tensor.substr(grid.prefix.size());
    const std::vector<int64_t>& shape = entry.shape;
    const bool is_column = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
    if (name.find('/') != std::string::npos || !is_column || shape[0] != count) continue;
    attributes[name] = {1, floats(grid, name)};
  }
  return attributes;
}

bool has_key(const Json& config, const std::vector<std::string>& keys) {
  if (!config.is_structured()) return false;
  for (const std::string& key : keys)
    if (config.is_object() && config.contains(key) && !config[key].is_null()) return true;
  return std::any_of(config.begin(), config.end(),
                     [&](const Json& part) { return has_key(part, keys); });
}

graph::NodeSet nodes_of(const LossGrid& grid, const Json& config) {
  const bool has_coordinates = grid.contains("latlon_rad") || grid.contains("node_latlon_rad");
  graph::NodeSet nodes;
  if (has_coordinates || has_key(config, {"multiscale_config", "projection_config"})) {
    nodes = grid.nodes();
  } else {
    nodes.lat_rad.resize(static_cast<size_t>(grid.lengths().grid));
    nodes.lon_rad = nodes.lat_rad;
  }
  nodes.attributes = attributes_of(grid, nodes.num_nodes());
  return nodes;
}

std::optional<graph::EdgeSet> edges_of(const LossGrid& grid) {
  if (!grid.contains("edge_index")) return std::nullopt;
  const at::Tensor index = grid.read("edge_index", at::kInt).contiguous();
  const int32_t* data = index.const_data_ptr<int32_t>();
  const int64_t m = index.size(1);
  graph::EdgeSet edges;
  edges.source_index.assign(data, data + m);
  edges.target_index.assign(data + m, data + 2 * m);
  edges.attributes = attributes_of(grid, m);
  return edges;
}

// All that a training would give to its losses.
class CaseInputs {
 public:
  CaseInputs(const LossGrid& grid, const Json& config, const LossUse& use)
      : variables_(grid.file.variables),
        nodes_(use.nodes ? *use.nodes : nodes_of(grid, config)),
        edges_(edges_of(grid)),
        times_out_(grid.lengths().time),
        use_(use) {
    const SafetensorsFile& tensors = grid.file.tensors;
    const auto take = [&](const std::string& stdev, const std::string& tendency) {
      if (!tensors.contains(stdev) || !tensors.contains(tendency)) return;
      statistics_.stdev = tensors.doubles(stdev);
      tendencies_[kTimestep_s].stdev = tensors.doubles(tendency);
    };
    take("input/stdev", "input/stdev_tendency");
    take("statistics/stdev", "statistics_tendencies/stdev");
  }

  train::LossInputs inputs() const {
    return {.variables = variables_,
            .statistics = statistics_,
            .tendencies = tendencies_,
            .nodes = nodes_,
            .edges = edges_ ? &*edges_ : nullptr,
            .output_mask = use_.output_mask,
            .timestep_s = kTimestep_s,
            .times_out = times_out_,
            .dtype = use_.dtype,
            .device = use_.device,
            .target_names = use_.of_outputs ? std::vector<std::string>() : variables_.names()};
  }

 private:
  const data::VariableTable& variables_;
  data::Statistics statistics_;
  std::map<int64_t, data::Statistics> tendencies_;
  graph::NodeSet nodes_;
  std::optional<graph::EdgeSet> edges_;
  int64_t times_out_;
  LossUse use_;
};

}  // namespace

BuiltLoss build_case_loss(const LossGrid& grid, const Json& config,
                          const at::Tensor& sample_weights, const LossUse& use,
                          const std::vector<train::SparseRowsPtr>& matrices) {
  BuiltLoss built;
  add_limits_of_all(config, built);
  const train::LossOptions options = options_of(grid, config, sample_weights);
  const CaseInputs of_case(grid, config, use);
  train::LossInputs inputs = of_case.inputs();
  inputs.matrix_used = [&](const train::SparseRowsPtr& matrix) {
    const size_t number = built.matrices.size();
    built.matrices.push_back(number < matrices.size() ? matrices[number] : matrix);
    return built.matrices.back();
  };
  built.loss = train::build_loss(options, inputs);
  return built;
}

train::Scaler build_case_scaler(const LossGrid& grid, const std::string& name, const LossUse& use) {
  const Json config{{"class", "MSELoss"}, {"scalers", Json::array()}};
  return train::build_scaler(options_of(grid, config, {}, {name}), name,
                             CaseInputs(grid, config, use).inputs());
}

}  // namespace aifs::conformance
