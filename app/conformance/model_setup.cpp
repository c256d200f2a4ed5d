// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/model_setup.h"

#include <ATen/ATen.h>

#include "app/conformance/report.h"
#include "app/conformance/tensors.h"

namespace aifs::conformance {

namespace {

graph::NodeSet read_nodes(const SafetensorsFile& file, const std::string& prefix,
                          const std::string& name) {
  const std::vector<double> latlon = file.doubles(concat(prefix, "nodes/", name, "/latlon_rad"));
  graph::NodeSet nodes;
  nodes.name = name;
  for (size_t i = 0; i < latlon.size(); i += 2) {
    nodes.lat_rad.push_back(static_cast<float>(latlon[i]));
    nodes.lon_rad.push_back(static_cast<float>(latlon[i + 1]));
  }
  return nodes;
}

graph::EdgeSet read_edges(const SafetensorsFile& file, const std::string& prefix,
                          const std::string& source, const std::string& target) {
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

// What stands between `before` and `after` in names of tensors, in order, each once.
std::vector<std::string> names_between(const SafetensorsFile& file, const std::string& before,
                                       const std::string& after) {
  std::vector<std::string> names;
  for (const auto& [tensor, entry] : file.entries()) {
    if (tensor.starts_with(before) && tensor.ends_with(after)) {
      names.push_back(tensor.substr(before.size(), tensor.size() - before.size() - after.size()));
    }
  }
  return names;
}

}  // namespace

data::VariableTable variables_of(const Json& json) {
  return datasets_of(json).at(0).variables;
}

graph::Graph read_graph(const SafetensorsFile& file, const std::string& prefix) {
  graph::Graph graph;
  for (const std::string& name : names_between(file, prefix + "nodes/", "/latlon_rad"))
    graph.node_sets.push_back(read_nodes(file, prefix, name));
  for (const std::string& ends : names_between(file, prefix + "edges/", "/edge_index")) {
    const size_t middle = ends.find("_to_");
    if (middle == std::string::npos) throw DataError(concat("edges '", ends, "' in a graph file"));
    const std::string source = ends.substr(0, middle), target = ends.substr(middle + 4);
    graph.edge_sets.push_back(
        read_edges(file, concat(prefix, "edges/", ends, "/"), source, target));
  }
  graph.check();
  return graph;
}

graph::Graph graph_of(const CaseFile& file, const SafetensorsFile& tensors) {
  if (!names_between(tensors, "graph/nodes/", "/latlon_rad").empty()) {
    return read_graph(tensors, "graph/");
  }
  const auto name = file.json.at("graph_file").get<std::string>();
  fs::path folder = file.json_path.parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
    if (fs::exists(folder / name)) return read_graph(SafetensorsFile(folder / name), "");
  }
  throw DataError(concat("the graph file '", name, "' of case '", file.name, "' was not found"),
                  "it is looked for beside the case and in the two folders above");
}

std::vector<train::Scaler> stored_scalers(const SafetensorsFile& tensors, const Json& names,
                                          at::ScalarType dtype, const std::string& prefix) {
  std::vector<train::Scaler> scalers;
  for (const Json& item : names) {
    const auto name = item.get<std::string>();
    const at::Tensor values = read_tensor(tensors, concat(prefix, "scaler/", name), dtype);
    if (name.starts_with("nan_mask")) {
      scalers.push_back(
          train::over_axes(name, values, {train::kBatch, train::kGrid, train::kVariable}));
      continue;
    }
    const train::Axis axis = name.starts_with("node")   ? train::kGrid
                             : name.starts_with("time") ? train::kTime
                                                        : train::kVariable;
    scalers.push_back(train::over_axis(name, values, axis));
  }
  return scalers;
}

CaseModel::CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype)
    : CaseModel(file, tensors, dtype, dtype) {}

CaseModel::CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype,
                     at::ScalarType activation_type)
    : parameters(dtype, /*seed=*/1, activation_type) {
  const graph::Graph graph = graph_of(file, tensors);
  try {
    network = std::make_unique<model::EncoderProcessorDecoder>(
        parameters, network_plan(file.json, tensors, graph),
        model::GraphTensors::create(graph, edge_attributes_of(file.json), dtype));
  } catch (const ConfigError& error) {
    throw NotSupported(error.what());
  }
  load(tensors);
}

CaseModel::CaseModel(const model::NetworkPlan& plan, const graph::Graph& graph,
                     const std::vector<std::string>& edge_attributes,
                     const SafetensorsFile& tensors, at::ScalarType dtype)
    : parameters(dtype, /*seed=*/1) {
  network = std::make_unique<model::EncoderProcessorDecoder>(
      parameters, plan, model::GraphTensors::create(graph, edge_attributes, dtype));
  load(tensors);
}

void CaseModel::load(const SafetensorsFile& tensors) {
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
