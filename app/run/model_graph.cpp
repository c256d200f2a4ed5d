// SPDX-License-Identifier: Apache-2.0
#include "app/run/model_graph.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "app/run/named_parts.h"
#include "core/check.h"
#include "train/loss/node_mask.h"

namespace aifs::app {

namespace {

// Returns what the graph says that it has not, as a fault of the option that asks for it.
template <class Lookup>
void require(const std::string& path, const Lookup& lookup) {
  try {
    lookup();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

void check_attributes(const std::vector<std::string>& wanted, const graph::EdgeSet& edges) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (edges.attributes.count(wanted[i]) > 0) continue;
    std::vector<std::string> known;
    for (const auto& [name, values] : edges.attributes)
      known.push_back(name);
    throw ConfigError(concat("model.edge_attributes.", i),
                      concat("the edges ", edges.source, "->", edges.target,
                             " of the graph have no attribute '", wanted[i], "'"),
                      nearest_names(wanted[i], known));
  }
}

void check_noise(const model::EnsembleOptions& options, const graph::Graph& graph,
                 const std::string& mesh) {
  if (options.noise_nodes.empty()) return;
  require("model.ensemble.noise_nodes", [&] {
    const graph::EdgeSet& edges = graph.edges(options.noise_nodes, mesh);
    if (options.noise_weights.empty() || edges.attributes.count(options.noise_weights) > 0) return;
    throw ConfigError("model.ensemble.noise_weights",
                      concat("the edges ", edges.source, "->", edges.target,
                             " of the graph have no attribute '", options.noise_weights, "'"));
  });
}

// Attention between sets of so many nodes, whichever is larger.
void check_window(const std::string& path, const model::BlockOptions& block, int64_t num_nodes) {
  if (block.kind != model::BlockKind::kTransformer || block.window < num_nodes) return;
  throw ConfigError(path + ".window",
                    concat("is ", block.window, ", there are only ", num_nodes, " nodes"),
                    "choose a window smaller than that, or 0: all nodes see each other");
}

// Calls for each dataset with its name and parts.
template <class Visit>
void for_datasets(const model::ModelOptions& model, const data::DataOptions& data,
                  const Visit& visit) {
  for (size_t d = 0; d < data.names().size(); ++d)
    visit(data.names()[d], parts_of(model, data, d));
}

}  // namespace

void check_windows(const model::ModelOptions& model,
                   const std::function<int64_t(const std::string&)>& num_nodes,
                   const data::DataOptions& data) {
  const std::vector<std::string> meshes = model.meshes();
  const auto larger = [&](const std::string& a, const std::string& b) {
    return std::max(num_nodes(a), num_nodes(b));
  };
  for_datasets(model, data, [&](const std::string& name, const NamedParts& parts) {
    check_window(parts.paths.encoder, *parts.encoder, larger(name, meshes.front()));
  });
  const bool on_all = model.hierarchy.level_processing;
  check_window("model.processor", model.processor,
               num_nodes(on_all ? meshes.front() : meshes.back()));
  for (size_t i = 0; i + 1 < meshes.size(); ++i) {
    const int64_t nodes = larger(meshes[i], meshes[i + 1]);
    check_window("model.hierarchy.upscale", model.hierarchy.upscale, nodes);
    check_window("model.hierarchy.downscale", model.hierarchy.downscale, nodes);
  }
  for_datasets(model, data, [&](const std::string& name, const NamedParts& parts) {
    check_window(parts.paths.decoder, *parts.decoder, larger(name, meshes.front()));
  });
}

namespace {

// (N) bool; undefined for an attribute of an outline, where only masks have values.
at::Tensor mask_or_nothing(const graph::NodeSet& nodes, const std::string& name,
                           const std::string& path) {
  const auto found = nodes.attributes.find(name);
  if (found != nodes.attributes.end() && found->second.values.empty()) return {};
  return train::node_mask(nodes, name, path);
}

}  // namespace

at::Tensor output_mask(const model::ModelOptions& model, const data::DataOptions& data,
                       size_t dataset, const graph::Graph& graph) {
  const NamedParts parts = parts_of(model, data, dataset);
  if (parts.output_mask.empty()) return {};
  return mask_or_nothing(graph.nodes(data.names()[dataset]), parts.output_mask,
                         parts.output_mask_path);
}

void leave_out_given(std::vector<graph::UnconnectedNodes>& all, const RunConfig& config,
                     const graph::Graph& graph) {
  const std::vector<std::string> names = config.data.names();
  for (size_t d = 0; d < names.size(); ++d) {
    at::Tensor mask;
    for (graph::UnconnectedNodes& nodes : all) {
      if (nodes.set != names[d] || nodes.are_sources) continue;
      if (!mask.defined()) mask = output_mask(config.model, config.data, d, graph);
      if (!mask.defined()) break;
      const bool* decided = mask.const_data_ptr<bool>();
      std::erase_if(nodes.nodes, [&](int32_t n) { return !decided[n]; });
    }
  }
  std::erase_if(all, [](const graph::UnconnectedNodes& nodes) { return nodes.nodes.empty(); });
}

std::vector<std::string> graph_warnings(const RunConfig& config, const graph::Graph& graph,
                                        const graph::GraphReport& report) {
  std::vector<std::string> warnings = report.warnings;
  if (warnings.empty() || (config.model.output_mask.empty() && config.model.output_masks.empty()))
    return warnings;
  for (const graph::UnconnectedNodes& nodes : report.unconnected) {
    std::vector<graph::UnconnectedNodes> left{nodes};
    leave_out_given(left, config, graph);
    if (!left.empty() && left[0].nodes.size() == nodes.nodes.size()) continue;
    const std::string text = nodes.text();
    std::erase_if(warnings, [&](const std::string& w) { return w.starts_with(text); });
    if (!left.empty())
      warnings.push_back(concat(left[0].text(), ": they are to be predicted (model.output_mask)"));
  }
  return warnings;
}

at::Tensor validation_region(const RunConfig& config, const graph::Graph& graph, size_t dataset) {
  const std::string &region = config.train.validation.region, path = "train.validation.region";
  if (region.empty()) return {};
  const std::vector<std::string> names = config.data.names();
  const auto has = [&](const std::string& name) {
    return graph.nodes(name).attributes.contains(region);
  };
  const graph::NodeSet& nodes = graph.nodes(names[dataset]);
  if (!has(nodes.name) && std::any_of(names.begin(), names.end(), has)) return {};
  return mask_or_nothing(nodes, region, path);
}

void check_graph(const model::ModelOptions& model, const graph::Graph& graph,
                 const data::DataOptions& data) {
  const std::vector<std::string> meshes = model.meshes();
  for (const std::string& mesh : meshes)
    require("model.hierarchy.meshes", [&] { graph.nodes(mesh); });
  const auto check_part = [&](const std::string& path, const model::BlockOptions& options,
                              const std::string& source, const std::string& target) {
    using model::BlockKind;
    if (options.kind == BlockKind::kGnn || options.kind == BlockKind::kGraphTransformer)
      require(path + ".kind",
              [&] { check_attributes(model.edge_attributes, graph.edges(source, target)); });
  };
  for_datasets(model, data, [&](const std::string& name, const NamedParts& parts) {
    check_part(parts.paths.encoder, *parts.encoder, name, meshes.front());
  });
  check_noise(model.ensemble, graph, meshes.front());
  for (size_t i = 0; i < meshes.size(); ++i) {
    const bool coarsest = i + 1 == meshes.size();
    if (coarsest || model.hierarchy.level_processing)
      check_part("model.processor", model.processor, meshes[i], meshes[i]);
    if (coarsest) break;
    check_part("model.hierarchy.upscale", model.hierarchy.upscale, meshes[i], meshes[i + 1]);
    check_part("model.hierarchy.downscale", model.hierarchy.downscale, meshes[i + 1], meshes[i]);
  }
  for_datasets(model, data, [&](const std::string& name, const NamedParts& parts) {
    check_part(parts.paths.decoder, *parts.decoder, meshes.front(), name);
  });
  for (size_t d = 0; d < data.names().size(); ++d)
    output_mask(model, data, d, graph);
  check_windows(
      model, [&](const std::string& name) { return graph.nodes(name).num_nodes(); }, data);
}

}  // namespace aifs::app
