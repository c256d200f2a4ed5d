// SPDX-License-Identifier: Apache-2.0
#include "app/run/model_graph.h"

#include <algorithm>

#include "core/check.h"

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

// Attention between sets of so many nodes, whichever is larger.
void check_window(const std::string& part, const model::BlockOptions& block, int64_t num_nodes) {
  if (block.kind != model::BlockKind::kTransformer || block.window < num_nodes) return;
  throw ConfigError(concat("model.", part, ".window"),
                    concat("is ", block.window, ", there are only ", num_nodes, " nodes"),
                    "choose a window smaller than that, or 0: all nodes see each other");
}

}  // namespace

void check_windows(const model::ModelOptions& model,
                   const std::function<int64_t(const std::string&)>& num_nodes,
                   const std::vector<std::string>& datasets) {
  const std::vector<std::string> meshes = model.meshes();
  const auto larger = [&](const std::string& a, const std::string& b) {
    return std::max(num_nodes(a), num_nodes(b));
  };
  for (const std::string& data : datasets)
    check_window("encoder", model.encoder, larger(data, meshes.front()));
  const bool on_all = model.hierarchy.level_processing;
  check_window("processor", model.processor, num_nodes(on_all ? meshes.front() : meshes.back()));
  for (size_t i = 0; i + 1 < meshes.size(); ++i) {
    const int64_t nodes = larger(meshes[i], meshes[i + 1]);
    check_window("hierarchy.upscale", model.hierarchy.upscale, nodes);
    check_window("hierarchy.downscale", model.hierarchy.downscale, nodes);
  }
  for (const std::string& data : datasets)
    check_window("decoder", model.decoder, larger(data, meshes.front()));
}

void check_graph(const model::ModelOptions& model, const graph::Graph& graph,
                 const std::vector<std::string>& datasets) {
  const std::vector<std::string> meshes = model.meshes();
  for (const std::string& mesh : meshes)
    require("model.hierarchy.meshes", [&] { graph.nodes(mesh); });
  const auto check_part = [&](const char* part, const model::BlockOptions& options,
                              const std::string& source, const std::string& target) {
    using model::BlockKind;
    if (options.kind == BlockKind::kGnn || options.kind == BlockKind::kGraphTransformer)
      require(concat("model.", part, ".kind"),
              [&] { check_attributes(model.edge_attributes, graph.edges(source, target)); });
  };
  for (const std::string& data : datasets)
    check_part("encoder", model.encoder, data, meshes.front());
  for (size_t i = 0; i < meshes.size(); ++i) {
    const bool coarsest = i + 1 == meshes.size();
    if (coarsest || model.hierarchy.level_processing)
      check_part("processor", model.processor, meshes[i], meshes[i]);
    if (coarsest) break;
    check_part("hierarchy.upscale", model.hierarchy.upscale, meshes[i], meshes[i + 1]);
    check_part("hierarchy.downscale", model.hierarchy.downscale, meshes[i + 1], meshes[i]);
  }
  for (const std::string& data : datasets)
    check_part("decoder", model.decoder, meshes.front(), data);
  check_windows(
      model, [&](const std::string& name) { return graph.nodes(name).num_nodes(); }, datasets);
}

}  // namespace aifs::app
