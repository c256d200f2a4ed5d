// SPDX-License-Identifier: Apache-2.0
#include "graph/recipe.h"

#include <algorithm>

#include "core/check.h"
#include "core/join.h"
#include "graph/edges/edge_attribute_kinds.h"
#include "graph/nodes/grid_kinds.h"

namespace aifs::graph {

namespace {

constexpr const char* kAreaWeight = "area_weight";

// Cells of a dataset that nobody lists.
RecipeNodes data_nodes(const GraphOptions& options, const std::string& name) {
  RecipeNodes nodes{.name = name, .path = "graph.grid", .is_data = true};
  if (options.grid == "dataset") {
    nodes.kind.set(DatasetKind());
  } else {
    GaussianGridKind grid;
    grid.grid = options.grid;
    nodes.kind.set(grid);
  }
  nodes.attributes.push_back({kAreaWeight, "graph.area_weight", options.area_weight});
  return nodes;
}

RecipeNodes listed_nodes(const GraphOptions& options, const std::string& name,
                         const NodeSetOptions& set, bool is_data) {
  RecipeNodes nodes{
      .name = name, .path = "graph.nodes." + name, .kind = set.kind, .is_data = is_data};
  for (const auto& [key, attribute] : set.attributes)
    nodes.attributes.push_back({key, concat(nodes.path, ".attributes.", key), attribute});
  const bool has_weight = std::any_of(set.attributes.begin(), set.attributes.end(),
                                      [](const auto& a) { return a.first == kAreaWeight; });
  if (is_data && !has_weight)
    nodes.attributes.push_back({kAreaWeight, "graph.area_weight", options.area_weight});
  return nodes;
}

std::vector<RecipeEdges::AttributePath> usual_attributes(const GraphOptions& options) {
  using Tagged = config::Tagged<EdgeAttributeKind>;
  return {{"edge_length", "graph.edge_length_norm", "graph.edge_length_norm",
           Tagged(LengthKind(options.edge_length_norm))},
          {"edge_dirs", "graph.edge_dirs_norm", "graph.edge_dirs_norm",
           Tagged(DirectionKind(options.edge_dirs_norm))}};
}

Recipe short_recipe(const GraphOptions& options, const std::vector<std::string>& datasets) {
  Recipe recipe;
  for (const std::string& name : datasets)
    recipe.nodes.push_back(data_nodes(options, name));
  recipe.nodes.push_back({.name = "hidden", .path = "graph.hidden", .kind = options.hidden.kind});
  const auto add = [&](const std::string& source, const std::string& target, const char* path,
                       const EdgeOptions& edges) {
    if (edges.kind->is_none()) return;
    recipe.edges.push_back({source, target, {{path, edges.kind}}, usual_attributes(options)});
  };
  for (const std::string& name : datasets)
    add(name, "hidden", "graph.encoder", options.encoder);
  add("hidden", "hidden", "graph.processor", options.processor);
  for (const std::string& name : datasets)
    add("hidden", name, "graph.decoder", options.decoder);
  return recipe;
}

RecipeEdges listed_edges(const GraphOptions& options, const EdgeSetOptions& set,
                         const std::string& path) {
  RecipeEdges edges{set.source, set.target, {}, {}};
  for (size_t i = 0; i < set.kinds.size(); ++i)
    edges.builders.push_back({concat(path, ".kinds.", i), set.kinds[i].kind});
  for (const auto& [name, attribute] : set.attributes) {
    const std::string place = concat(path, ".attributes.", name);
    edges.attributes.push_back({name, place, place + ".norm", attribute.kind});
  }
  if (edges.attributes.empty()) edges.attributes = usual_attributes(options);
  return edges;
}

}  // namespace

Recipe recipe_of(const GraphOptions& options, const std::vector<std::string>& datasets) {
  for (const std::string& name : datasets)
    check_set_name(name, "data.datasets." + name);
  if (!options.is_long()) return short_recipe(options, datasets);
  Recipe recipe;
  std::vector<std::string> names;
  for (const std::string& name : datasets) {
    const bool listed = options.makes_nodes(name);
    if (!listed) recipe.nodes.push_back(data_nodes(options, name));
  }
  for (const auto& [name, set] : options.nodes)
    recipe.nodes.push_back(listed_nodes(options, name, set, contains(datasets, name)));
  for (const RecipeNodes& nodes : recipe.nodes)
    names.push_back(nodes.name);
  for (size_t i = 0; i < options.edges.size(); ++i) {
    const EdgeSetOptions& set = options.edges[i];
    const std::string path = concat("graph.edges.", i);
    const auto require = [&](const std::string& name, const char* key) {
      if (contains(names, name)) return;
      throw ConfigError(concat(path, ".", key), concat("there is no node set '", name, "'"),
                        nearest_names(name, names));
    };
    require(set.source, "source");
    require(set.target, "target");
    recipe.edges.push_back(listed_edges(options, set, path));
  }
  return recipe;
}

}  // namespace aifs::graph
