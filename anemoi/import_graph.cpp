// SPDX-License-Identifier: Apache-2.0
// Section "graph": node sets, edges and their attributes.
#include <algorithm>
#include <cmath>
#include <map>

#include "anemoi/sections.h"
#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

Json norm_of(const Place& attribute) {
  const Place norm = attribute["norm"];
  return norm ? norm.text() : std::string("none");
}

// ---------------------------------------------------------------------------------- data nodes ---

void import_area_weight(const Place& attribute, const Section& out) {
  static const std::map<std::string, std::string> kinds{
      {"SphericalAreaWeights", "spherical"},
      {"AreaWeights", "spherical"},
      {"UniformWeights", "uniform"},
      {"CosineLatWeightedAttribute", "cosine_latitude"},
      {"IsolatitudeAreaWeights", "isolatitude"},
      {"PlanarAreaWeights", "planar"}};
  const auto found = kinds.find(attribute.class_name());
  if (found == kinds.end()) {
    attribute.not_honoured(concat("there are no weights of class ", attribute.class_name()));
    return;
  }
  out.set("kind", found->second, attribute["_target_"]);
  out.set("norm", norm_of(attribute), attribute["norm"] ? attribute["norm"] : attribute);
  attribute["fill_value"].expect(0, "every cell has an area");
  attribute["radius"].expect(1, "is 1 here");
  attribute["centre"].no_effect("is the centre of the sphere");
  attribute["dtype"].no_effect("weights are float32");
  attribute["min_value"].expect(1e-3, "is 0.001 here");
  attribute["max_value"].expect(1, "is 1 here");
}

void import_data_nodes(const Translation& t, const Place& node, const Section& out, bool first) {
  const Place builder = node["node_builder"];
  const std::string name = builder.class_name();
  if (name == "AnemoiDatasetNodes" || name == "ZarrDatasetNodes") {
    if (first) out.set("grid", "dataset", builder["_target_"]);
    builder["dataset"].no_effect("data nodes are the cells of the training's dataset");
  } else if (name == "ReducedGaussianGridNodes" && first) {
    out.set("grid", builder["grid"].text(), builder["grid"]);
  } else {
    builder.not_honoured("data nodes are the cells of the training's dataset");
  }
  for (const auto& [key, attribute] : node["attributes"].members()) {
    const bool is_area = attribute.is_object() && key == "area_weight";
    if (is_area && first) {
      import_area_weight(attribute, out["area_weight"]);
    } else if (is_area) {
      attribute.no_effect("as those of the first dataset");
    } else if (contains(t.node_attributes, key)) {
      attribute.not_honoured("is a node attribute that does not exist here, and the loss uses it");
    } else {
      attribute.no_effect("no loss uses it");
    }
  }
}

// -------------------------------------------------------------------------------- hidden nodes ---

// How often an icosahedron is refined to have about so many nodes.
int64_t nearest_refinement(double nodes) {
  const double refinement = std::log2(std::max(1.0, (nodes - 2.0) / 10.0)) / 2.0;
  return std::clamp<int64_t>(std::llround(refinement), 0, 11);
}

// Nodes of a Gaussian grid, roughly where it is a reduced one.
double gaussian_nodes(const std::string& grid) {
  if (grid.size() < 2 || grid.find_first_not_of("0123456789", 1) != std::string::npos) return 0.0;
  const double n = std::stod(grid.substr(1, 8));
  return grid[0] == 'o' || grid[0] == 'O' ? 4.0 * n * (n + 9.0) : 5.3 * n * n;
}

// Counts the nodes of a mesh that there is not here, roughly; 0: unknown.
double nodes_of(const std::string& name, const Place& builder) {
  if (name == "ReducedGaussianGridNodes") return gaussian_nodes(builder["grid"].text(""));
  if (name == "HexNodes") return 2.0 + 120.0 * std::pow(7.0, builder["resolution"].number(0));
  if (name == "HEALPixNodes") return 12.0 * std::pow(4.0, builder["resolution"].number(0));
  return 0.0;
}

int64_t import_hidden_nodes(const Place& node, const Section& out) {
  const Place builder = node["node_builder"];
  const std::string name = builder.class_name();
  node["attributes"].no_effect("hidden nodes have none here");
  const Place resolution = builder["resolution"];
  int64_t refinement = 5;
  if (name == "TriNodes") {
    refinement = 0;  // of a list, the finest counts
    for (const double level : resolution.numbers())
      refinement = std::max(refinement, static_cast<int64_t>(std::clamp(level, 0.0, 99.0)));
  } else {
    const double nodes = nodes_of(name, builder);
    const Place coarse = builder.any_of({"global_resolution", "resolution"});
    refinement = nodes > 0.0
                     ? nearest_refinement(nodes)
                     : std::clamp<int64_t>(coarse.is_number() ? coarse.integer() : 5, 0, 11);
    builder.not_honoured(
        concat("hidden meshes built here are icospheres, so this is another network; one of ",
               10 * (int64_t{1} << (2 * refinement)) + 2, " nodes takes its place"));
  }
  out.set("kind", "tri", builder["_target_"]);
  out.set("refinement", refinement, resolution ? resolution : builder);
  return refinement;
}

// --------------------------------------------------------------------------------------- edges ---

void refuse_masks(const Place& builder) {
  for (const char* mask : {"source_mask_attr_name", "target_mask_attr_name"})
    builder[mask].expect(nullptr, "edges cannot be limited to some nodes");
}

void import_neighbours(const Place& builder, const Section& out) {
  const std::string name = builder.class_name();
  const Place type = builder["_target_"];
  if (name == "CutOffEdges") {
    out.set("kind", "cutoff", type);
    if (builder["cutoff_factor"])
      out.set("cutoff_factor", builder["cutoff_factor"].number(), builder["cutoff_factor"]);
    builder["cutoff_distance_km"].expect(nullptr, "a radius is a multiple of node distances here");
    const Place most = builder["max_num_neighbours"];
    out.set("max_neighbours", most.integer(64), most);
  } else if (name == "KNNEdges") {
    const Place number = builder["num_nearest_neighbours"];
    out.set("kind", "knn", type);
    out.set("num_neighbours", number.integer(), number);
  } else {
    builder.not_honoured(concat("there are no edges of class ", name));
  }
  refuse_masks(builder);
}

void import_multi_scale(const Place& builder, int64_t refinement, const Section& out) {
  if (builder.class_name() != "MultiScaleEdges") {
    builder.not_honoured(concat("there are no processor edges of class ", builder.class_name()));
    return;
  }
  out.set("kind", "multi_scale", builder["_target_"]);
  const Place hops = builder["x_hops"], scales = builder["scale_resolutions"];
  out.set("x_hops", hops.integer(1), hops);
  if (!scales) {
    out.set("include_level_0", true, builder);
  } else {
    std::vector<int64_t> levels;
    if (scales.is_list()) {
      for (const Place& level : scales.elements())
        levels.push_back(level.integer());
    } else {
      for (int64_t level = 1; level <= std::min<int64_t>(scales.integer(), 11); ++level)
        levels.push_back(level);
    }
    if (std::erase_if(levels, [&](int64_t level) { return level > refinement; }) > 0)
      scales.not_honoured("names levels above those of the mesh");
    out.set("levels", levels, scales);
  }
  refuse_masks(builder);
}

void import_edge_attributes(const Place& attributes, const Section& out) {
  for (const auto& [key, attribute] : attributes.members()) {
    const std::string name = attribute.class_name();
    const std::string norm = key + "_norm";
    const bool known = (key == "edge_length" && name == "EdgeLength") ||
                       (key == "edge_dirs" && name == "EdgeDirection");
    if (!known) {
      attribute.not_honoured("edges have attributes edge_length and edge_dirs");
      continue;
    }
    const Json* before = out.find(norm);
    if (before && *before != norm_of(attribute)) {
      attribute["norm"].not_honoured("is that of the first edges for all of them");
    } else if (!before) {
      out.set(norm, norm_of(attribute), attribute["norm"] ? attribute["norm"] : attribute);
    }
  }
}

// The one builder of an edge set.
Place single_builder(const Place& edge) {
  const std::vector<Place> builders = edge["edge_builders"].elements();
  for (size_t i = 1; i < builders.size(); ++i)
    builders[i].not_honoured("edges of one builder only can be had between two node sets");
  return builders.empty() ? edge["edge_builder"] : builders[0];
}

class Edges {
 public:
  Edges(const Translation& t, int64_t refinement, const Section& out)
      : t_(t), refinement_(refinement), out_(out) {}

  void add(const Place& edge) {
    const std::string source = edge["source_name"].text(), target = edge["target_name"].text();
    const bool from_data = contains(t_.datasets, source), to_data = contains(t_.datasets, target);
    const std::string mesh = t_.meshes[0];
    if (from_data && target == mesh) {
      add_mapper(edge, "encoder");
    } else if (source == mesh && to_data) {
      add_mapper(edge, "decoder");
    } else if (source == mesh && target == mesh) {
      has_processor_ = true;
      import_multi_scale(single_builder(edge), refinement_, out_["processor"]);
    } else if (t_.meshes.size() > 1) {
      edge.no_effect("edges of several meshes come from graph.file");
      return;
    } else {
      edge.not_honoured("there are edges between data and hidden nodes, and among hidden ones");
      return;
    }
    import_edge_attributes(edge["attributes"], out_);
  }

  // Graphs of several meshes come from a file.
  void check_all_there(const Place& all) const {
    if (t_.meshes.size() > 1) return;
    const std::string data = t_.datasets[0], mesh = t_.meshes[0];
    if (!mappers_.contains("encoder")) lack(all, data, mesh);
    if (!mappers_.contains("decoder")) lack(all, mesh, data);
    const Json* kind = t_.section("model")["processor"].find("kind");
    const bool is_on_edges = kind && (*kind == "gnn" || *kind == "graph_transformer");
    if (is_on_edges && !has_processor_) lack(all, mesh, mesh);
  }

 private:
  [[noreturn]] static void lack(const Place& all, const std::string& source,
                                const std::string& target) {
    throw ConfigError(all.path(), concat("has no edges from '", source, "' to '", target, "'"));
  }

  // Those of all datasets are alike.
  void add_mapper(const Place& edge, const char* part) {
    const Place builder = single_builder(edge);
    const auto before = mappers_.find(part);
    if (before == mappers_.end()) {
      import_neighbours(builder, out_[part]);
      mappers_.emplace(part, builder);
    } else {
      builder.expect_like(before->second, "edges of the first dataset are for all");
    }
  }

  const Translation& t_;
  int64_t refinement_;
  const Section& out_;
  bool has_processor_ = false;
  std::map<std::string, Place> mappers_;  // the first builder of each part
};

void import_nodes(const Translation& t, const Place& nodes, const Section& out,
                  int64_t& refinement) {
  for (const auto& [name, node] : nodes.members()) {
    if (contains(t.datasets, name)) {
      import_data_nodes(t, node, out, name == t.datasets[0]);
    } else if (name == t.meshes[0]) {
      refinement = import_hidden_nodes(node, out["hidden"]);
    } else if (contains(t.meshes, name)) {
      node.not_honoured("graphs of several meshes are not built here: graph.file must hold one");
    } else {
      node.not_honoured("there are data nodes and hidden nodes only");
    }
  }
}

}  // namespace

void import_graph(Translation& t) {
  const Place graph = t.root["graph"];
  const Section out = t.section("graph");
  const Place stored = t.root["system"]["input"]["graph"];
  if (!graph["nodes"]) {
    const char* why =
        "a graph that Anemoi stored is not read: it is built anew, by default as in o96.json. That "
        "of a checkpoint comes with its weights (tools/anemoi_checkpoint.py)";
    (stored ? stored : graph).not_honoured(why);
  } else {
    stored.no_effect("graph.file names a file for the graph here, in another format");
  }
  int64_t refinement = 5;
  import_nodes(t, graph["nodes"], out, refinement);
  Edges edges(t, refinement, out);
  for (const Place& edge : graph["edges"].elements())
    edges.add(edge);
  if (graph["nodes"]) edges.check_all_there(graph["edges"]);
  if (t.meshes.size() > 1) out.set("file", t.name + ".nc", graph["nodes"]);
  for (const Place& processor : graph["post_processors"].elements())
    processor.not_honoured("nothing is done to a graph that is built");
  graph["overwrite"].no_effect("a graph file is written once");
  for (const char* key : {"attributes", "edge_builders", "data", "hidden"})
    graph[key].no_effect("is meant for references");
}

}  // namespace aifs::anemoi
