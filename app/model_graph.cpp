// SPDX-License-Identifier: Apache-2.0
#include "app/model_graph.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::app {

namespace {

using Meshes = std::vector<std::string>;

void check_nodes(const Meshes& meshes, const graph::Graph& graph) {
  std::string names;
  for (const graph::NodeSet& nodes : graph.node_sets)
    names += concat(names.empty() ? "'" : ", '", nodes.name, "'");
  for (const std::string& mesh : meshes) {
    const bool found = std::any_of(graph.node_sets.begin(), graph.node_sets.end(),
                                   [&](const graph::NodeSet& nodes) { return nodes.name == mesh; });
    if (!found) {
      throw ConfigError("model.hierarchy.meshes",
                        concat("the graph has no nodes '", mesh, "', only ", names));
    }
  }
}

void check_edges(const graph::Graph& graph, const char* part, const model::BlockOptions& options,
                 const std::string& source, const std::string& target) {
  using model::BlockKind;
  if (options.kind != BlockKind::kGnn && options.kind != BlockKind::kGraphTransformer) return;
  const bool found =
      std::any_of(graph.edge_sets.begin(), graph.edge_sets.end(), [&](const graph::EdgeSet& edges) {
        return edges.source == source && edges.target == target;
      });
  if (found) return;
  throw ConfigError(concat("model.", part, ".kind"),
                    concat(enum_name(options.kind), " needs edges ", source, "->", target,
                           ", which the graph has not"));
}

}  // namespace

void check_graph(const model::ModelOptions& model, const graph::Graph& graph) {
  const Meshes meshes = model.meshes();
  check_nodes(meshes, graph);
  check_edges(graph, "encoder", model.encoder, "data", meshes.front());
  for (size_t i = 0; i < meshes.size(); ++i) {
    const bool coarsest = i + 1 == meshes.size();
    if (coarsest || model.hierarchy.level_processing)
      check_edges(graph, "processor", model.processor, meshes[i], meshes[i]);
    if (coarsest) break;
    check_edges(graph, "hierarchy.upscale", model.hierarchy.upscale, meshes[i], meshes[i + 1]);
    check_edges(graph, "hierarchy.downscale", model.hierarchy.downscale, meshes[i + 1], meshes[i]);
  }
  check_edges(graph, "decoder", model.decoder, meshes.front(), "data");
}

}  // namespace aifs::app
