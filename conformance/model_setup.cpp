// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_setup.h"

#include <ATen/ATen.h>

#include "app/run/graph_tensors.h"
#include "app/run/network_plan.h"
#include "conformance/report.h"
#include "conformance/tar_file.h"
#include "conformance/tensors.h"
#include "core/temporary_folder.h"

namespace aifs::conformance {

data::VariableTable variables_of(const Json& json) {
  return datasets_of(json).at(0).variables;
}

graph::Graph graph_of(const CaseFile& file, const SafetensorsFile& tensors) {
  graph::Graph own = app::read_graph_tensors(tensors, "graph/");
  if (!own.node_sets.empty()) return own;
  const auto name = file.json.at("graph_file").get<std::string>();
  fs::path folder = file.json_path.parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
    if (fs::exists(folder / name)) return app::read_graph_tensors(SafetensorsFile(folder / name));
  }
  throw DataError(concat("the graph file '", name, "' of case '", file.name, "' was not found"),
                  "it is looked for beside the case and in the two folders above");
}

namespace {

// {"class": "Boolean1DMask", "attribute_name": "cutout_mask"} as a tensor; null is no mask.
at::Tensor mask_of_attribute(const std::string& dataset, const Json& mask,
                             const graph::Graph& graph) {
  if (mask.is_null()) return {};
  const auto name = mask.value("class", mask.value("_target_", std::string()));
  if (name.ends_with("NoOutputMask")) return {};
  const auto attribute = mask.value("attribute_name", std::string());
  const graph::NodeSet& nodes = graph.nodes(dataset);
  const auto found = nodes.attributes.find(attribute);
  if (!name.ends_with("Boolean1DMask") || found == nodes.attributes.end())
    throw NotSupported("output mask " + mask.dump());
  return at::tensor(at::ArrayRef<float>(found->second.values)) != 0.0;
}

}  // namespace

at::Tensor output_mask_of(const CaseFile& file, const SafetensorsFile& tensors,
                          const graph::Graph& graph, const CaseDataset& dataset) {
  at::Tensor mask;
  for (const Json& owner : {file.json, file.json.at("model")}) {
    if (!owner.contains("output_mask") || !owner["output_mask"].is_object()) continue;
    const Json& masks = owner["output_mask"];
    const Json own =
        masks.contains("datasets") ? masks["datasets"].value(dataset.name, Json()) : masks;
    mask = mask_of_attribute(dataset.name, own, graph);
  }
  const std::string name = dataset.prefix + "output_mask";
  if (!tensors.contains(name)) return mask;
  const at::Tensor stored = read_tensor(tensors, name).flatten() != 0;
  if (mask.defined() && !at::equal(mask, stored))
    throw Error("the stored output mask is not the attribute of the graph that is named for it");
  return stored;
}

CaseModel::CaseModel(const CaseFile& file, const SafetensorsFile& tensors, at::ScalarType dtype)
    : parameters(dtype, /*seed=*/1) {
  build(file, tensors, at::kCPU);
}

CaseModel::CaseModel(const CaseFile& file, const SafetensorsFile& tensors,
                     train::Precision precision, at::Device device)
    : parameters(train::weight_type(precision), /*seed=*/1, train::activation_type(precision)) {
  build(file, tensors, device);
}

namespace {

bool any_starts_with(const SafetensorsFile& tensors, const std::string& prefix) {
  const auto found = tensors.entries().lower_bound(prefix);
  return found != tensors.entries().end() && found->first.starts_with(prefix);
}

// A processor that does nothing has edge features all the same, unless the reference's graph had
// no edges for it; the stored one may be that of several cases.
void drop_unused_edges(const model::NetworkPlan& plan, const SafetensorsFile& tensors,
                       graph::Graph& graph) {
  if (plan.options.processor.kind != model::BlockKind::kNone ||
      any_starts_with(tensors, "state/processor_graph_provider.")) {
    return;
  }
  std::erase_if(graph.edge_sets, [&](const graph::EdgeSet& edges) {
    return edges.source == plan.meshes.back() && edges.target == plan.meshes.back();
  });
}

}  // namespace

void CaseModel::build(const CaseFile& file, const SafetensorsFile& tensors, at::Device device) {
  graph = graph_of(file, tensors);
  const TemporaryFolder matrices;
  try {
    const NetworkConfig config = network_config(file.json, tensors, graph, matrices.path());
    const model::NetworkPlan plan = app::network_plan(
        config.model, config.data, data_parts(file.json, tensors, config.data), &graph);
    drop_unused_edges(plan, tensors, graph);
    make(config, plan, device);
  } catch (const ConfigError& error) {
    throw NotSupported(error.what());
  }
  load(tensors, device);
  for (const auto& name :
       file.json.value("parameters_without_gradient", std::vector<std::string>()))
    parameters.mark_unused(name);
}

CaseModel::CaseModel(const NetworkConfig& config, const std::vector<app::DataParts>& data,
                     const graph::Graph& on, const SafetensorsFile& tensors, at::ScalarType dtype)
    : parameters(dtype, /*seed=*/1), graph(on) {
  make(config, app::network_plan(config.model, config.data, data, &graph), at::kCPU);
  load(tensors, at::kCPU);
}

const graph::NodeSet* CaseModel::nodes_of(const std::string& dataset) const {
  for (const graph::NodeSet& nodes : graph.node_sets)
    if (nodes.name == dataset) return &nodes;
  return nullptr;
}

void CaseModel::make(const NetworkConfig& config, const model::NetworkPlan& plan,
                     at::Device device) {
  network = std::make_unique<model::EncoderProcessorDecoder>(
      parameters, plan,
      model::GraphTensors::create(graph, config.model.edge_attributes, parameters.dtype())
          .to(device));
}

void CaseModel::load(const SafetensorsFile& tensors, at::Device device) {
  parameters.flatten(device);
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
