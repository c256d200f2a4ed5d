// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/model_setup.h"

#include <ATen/ATen.h>

#include "app/conformance/report.h"
#include "app/conformance/tensors.h"

namespace aifs::conformance {

namespace {

std::vector<std::string> texts(const Json& json) {
  return json.get<std::vector<std::string>>();
}

graph::NodeSet read_nodes(const SafetensorsFile& file, const std::string& name) {
  const std::vector<double> latlon = file.doubles("nodes/" + name + "/latlon_rad");
  graph::NodeSet nodes;
  nodes.name = name;
  for (size_t i = 0; i < latlon.size(); i += 2) {
    nodes.lat_rad.push_back(static_cast<float>(latlon[i]));
    nodes.lon_rad.push_back(static_cast<float>(latlon[i + 1]));
  }
  return nodes;
}

graph::EdgeSet read_edges(const SafetensorsFile& file, const std::string& source,
                          const std::string& target) {
  const std::string prefix = concat("edges/", source, "_to_", target, "/");
  const std::vector<int64_t> index = file.integers(prefix + "edge_index");
  const size_t count = index.size() / 2;
  graph::EdgeSet edges;
  edges.source = source;
  edges.target = target;
  for (size_t e = 0; e < count; ++e) {
    edges.source_index.push_back(static_cast<int32_t>(index[e]));
    edges.target_index.push_back(static_cast<int32_t>(index[count + e]));
  }
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(prefix) || name == prefix + "edge_index" || entry.shape.size() != 2) {
      continue;
    }
    const std::vector<double> values = file.doubles(name);
    graph::Attribute& attribute = edges.attributes[name.substr(prefix.size())];
    attribute.width = entry.shape[1];
    attribute.values.assign(values.begin(), values.end());
  }
  return edges;
}

model::BlockOptions block_options(const Json& json, const std::string& expected_class) {
  const auto name = json.at("class").get<std::string>();
  if (name != expected_class) throw NotSupported(concat("class ", name));
  model::BlockOptions block;
  block.mlp_extra_layers = json.value("mlp_extra_layers", int64_t{0});
  block.mlp_hidden_ratio = json.value("mlp_hidden_ratio", 1.0);
  const auto implementation = json.value("mlp_implementation", std::string("mlp"));
  for (const auto& [value, known] : EnumNames<model::MlpImplementation>::table) {
    if (implementation == known) block.mlp_implementation = value;
  }
  return block;
}

model::BoundingKind bounding_kind(const std::string& name) {
  using K = model::BoundingKind;
  static const std::map<std::string, K> kinds{
      {"ReluBounding", K::kRelu},
      {"LeakyReluBounding", K::kLeakyRelu},
      {"HardtanhBounding", K::kHardtanh},
      {"LeakyHardtanhBounding", K::kLeakyHardtanh},
      {"FractionBounding", K::kFraction},
      {"LeakyFractionBounding", K::kLeakyFraction},
      {"NormalizedReluBounding", K::kNormalizedRelu},
      {"NormalizedLeakyReluBounding", K::kNormalizedLeakyRelu}};
  const auto found = kinds.find(name);
  if (found == kinds.end()) throw NotSupported("bounding " + name);
  return found->second;
}

}  // namespace

model::BoundingOptions bounding_options(const std::string& name, const Json& json) {
  model::BoundingOptions options;
  options.kind = bounding_kind(name);
  options.variables = texts(json.at("variables"));
  if (json.contains("normalizer")) {
    options.thresholds = json.at("min_val").get<std::vector<double>>();
    options.normalizer = texts(json.at("normalizer"));
  } else {
    options.min_val = json.value("min_val", 0.0);
    options.max_val = json.value("max_val", 1.0);
  }
  options.total_var = json.value("total_var", std::string());
  return options;
}

data::VariableTable variables_of(const Json& json) {
  const Json& variables = json.at("variables");
  data::RoleOptions roles{texts(variables.at("forcing")), texts(variables.at("diagnostic"))};
  return data::VariableTable(texts(variables.at("dataset_variables")), roles);
}

data::Statistics statistics_of(const SafetensorsFile& tensors, const std::string& prefix) {
  return {tensors.doubles(prefix + "mean"), tensors.doubles(prefix + "stdev"),
          tensors.doubles(prefix + "minimum"), tensors.doubles(prefix + "maximum")};
}

graph::Graph graph_of(const CaseFile& file) {
  const auto name = file.json.at("graph_file").get<std::string>();
  fs::path folder = file.json_path.parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
    if (!fs::exists(folder / name)) continue;
    const SafetensorsFile tensors(folder / name);
    graph::Graph graph;
    graph.node_sets = {read_nodes(tensors, "data"), read_nodes(tensors, "hidden")};
    graph.edge_sets = {read_edges(tensors, "data", "hidden"),
                       read_edges(tensors, "hidden", "hidden"),
                       read_edges(tensors, "hidden", "data")};
    graph.check();
    return graph;
  }
  throw DataError(concat("the graph file '", name, "' of case '", file.name, "' was not found"),
                  "it is looked for beside the case and in the two folders above");
}

model::ModelOptions model_options(const Json& json) {
  const Json& m = json.at("model");
  model::ModelOptions options;
  options.encoder = block_options(m.at("encoder"), "GNNForwardMapper");
  options.processor = block_options(m.at("processor"), "GNNProcessor");
  options.decoder = block_options(m.at("decoder"), "GNNBackwardMapper");
  options.channels = m.at("processor").at("num_channels").get<int64_t>();
  options.layers = m.at("processor").at("num_layers").get<int64_t>();
  if (m.at("encoder").at("num_channels") != options.channels ||
      m.at("decoder").at("num_channels") != options.channels) {
    throw NotSupported("parts of different width");
  }
  const Json& nodes = m.at("node_trainable");
  const Json& edges = m.at("edge_trainable");
  options.trainable_parameters = {
      nodes.at("data").get<int64_t>(), nodes.at("hidden").get<int64_t>(),
      edges.at("data2hidden").get<int64_t>(), edges.at("hidden2hidden").get<int64_t>(),
      edges.at("hidden2data").get<int64_t>()};
  options.latent_skip = m.at("latent_skip").get<bool>();
  options.edge_attributes = texts(m.at("edge_attributes_in_order"));
  options.layer_norm_eps = m.value("layer_norm_eps", 1e-5);
  const std::string residual = json.contains("residual")
                                   ? json["residual"].value("kind", std::string("skip"))
                                   : std::string("skip");
  if (residual.starts_with("none")) {
    options.residual = model::ResidualKind::kNone;
  } else if (!residual.starts_with("skip")) {
    throw NotSupported("residual " + residual.substr(0, residual.find(':')));
  }
  for (const Json& bounding : json.at("bounding_in_order")) {
    options.bounding.push_back(bounding_options(bounding.at("class").get<std::string>(), bounding));
  }
  return options;
}

model::FieldLayout field_layout(const Json& json, const data::VariableTable& variables,
                                const data::Statistics& statistics) {
  model::FieldLayout layout;
  layout.times_in = json.value("times_in", int64_t{2});
  layout.times_out = json.value("times_out", int64_t{1});
  layout.num_inputs = variables.num_inputs();
  layout.input_prognostic = variables.input_prognostic();
  layout.output_prognostic = variables.output_prognostic();
  layout.outputs.names = variables.output_names();
  for (const int64_t column : variables.output_columns()) {
    layout.outputs.mean.push_back(statistics.mean[static_cast<size_t>(column)]);
    layout.outputs.stdev.push_back(statistics.stdev[static_cast<size_t>(column)]);
  }
  return layout;
}

std::vector<train::Scaler> stored_scalers(const SafetensorsFile& tensors, const Json& names,
                                          at::ScalarType dtype) {
  std::vector<train::Scaler> scalers;
  for (const Json& item : names) {
    const auto name = item.get<std::string>();
    const at::Tensor values = read_tensor(tensors, "scaler/" + name, dtype);
    const train::Axis axis = name.starts_with("node")   ? train::kGrid
                             : name.starts_with("time") ? train::kTime
                                                        : train::kVariable;
    scalers.push_back(train::over_axis(name, values, axis));
  }
  return scalers;
}

CaseModel::CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype)
    : parameters(dtype, /*seed=*/1) {
  const data::VariableTable variables = variables_of(file.json);
  const model::ModelOptions options = model_options(file.json);
  const auto graph = model::GraphTensors::create(graph_of(file), options.edge_attributes, dtype);
  network = std::make_unique<model::EncoderProcessorDecoder>(
      parameters, options, graph,
      field_layout(file.json, variables, statistics_of(tensors, "statistics/")));
  parameters.flatten(at::kCPU);
  for (const model::Parameter& parameter : parameters.entries()) {
    const at::Tensor value = read_tensor(tensors, "state/" + parameter.name);
    parameters.assign(parameter.name, value);
  }
  for (const auto& [name, entry] : tensors.entries()) {
    if (name.starts_with("state/") && !parameters.contains(name.substr(6))) {
      throw Error(concat("the network has no tensor '", name.substr(6), "'"));
    }
  }
}

}  // namespace aifs::conformance
