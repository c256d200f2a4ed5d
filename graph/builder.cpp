// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/join.h"
#include "core/stale_files.h"
#include "graph/graph_file.h"
#include "graph/nodes/grid_kinds.h"
#include "graph/recipe.h"

namespace aifs::graph {

namespace {

constexpr int64_t kMostHiddenPerData = 4;

class Stopwatch {
 public:
  // Adds the time since the last call (or the construction) to that of a part.
  void note(const std::string& name) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    for (GraphReport::Part& part : parts_) {
      if (part.name == name) return void(part.seconds += seconds);
    }
    parts_.push_back({name, seconds});
  }
  const std::vector<GraphReport::Part>& parts() const { return parts_; }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::vector<GraphReport::Part> parts_;
};

// Of one dataset, which is called "data".
std::vector<NamedCells> single(const Coordinates& dataset) {
  return {{"data", dataset}};
}

std::vector<std::string> names_of(const std::vector<NamedCells>& datasets) {
  std::vector<std::string> names;
  for (const NamedCells& dataset : datasets)
    names.push_back(dataset.name);
  return names;
}

// Turns what the library says of impossible nodes or edges into a fault of the option at `path`.
template <class Make>
auto made_for(const std::string& path, const Make& make) {
  try {
    return make();
  } catch (const ConfigError&) {
    throw;
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

void require_edges(const EdgeList& edges, const std::string& path) {
  if (edges.num_edges() > 0) return;
  throw ConfigError(path, "no edge was found", "a larger cut-off, or the kind \"knn\"");
}

// A graph in the making.
class Construction {
 public:
  Construction(const GraphOptions& options, const std::vector<NamedCells>& datasets)
      : options_(options), datasets_(datasets), threads_(options.threads.value_or(0)) {
    options.validate("graph");
    if (datasets.size() > 1 && options.grid != "dataset") {
      throw ConfigError(
          "graph.grid",
          concat("is '", options.grid, "', but there are ", datasets.size(), " datasets"),
          "use \"dataset\": each has its own cells");
    }
    recipe_ = recipe_of(options, names_of(datasets));
  }

  // The cells of each dataset as nodes, without attributes.
  std::vector<NodeSet> data_nodes() const {
    std::vector<NodeSet> sets;
    for (const RecipeNodes& nodes : recipe_.nodes)
      if (nodes.is_data) sets.push_back(make_nodes(nodes).set);
    return sets;
  }
  Graph build(GraphReport* report);
  Graph outline();

 private:
  MeshNodes make_nodes(const RecipeNodes& recipe) const;
  bool has_places(size_t number) const;
  bool is_read(size_t number, size_t attribute) const;
  void check_sizes() const;
  EdgePlace place_of(const RecipeEdges& edges, const std::string& path) const {
    return {path, made_.at(edges.source), made_.at(edges.target), threads_};
  }
  EdgeList make_edges(const RecipeEdges& recipe) const;
  void add_attributes(const RecipeEdges& recipe, const NodeSet& source, const NodeSet& target,
                      EdgeSet& edges) const;
  void post_process(Graph& graph) const;
  Graph taken_apart(std::vector<EdgeSet> edge_sets);

  const GraphOptions& options_;
  const std::vector<NamedCells>& datasets_;
  int64_t threads_;
  Recipe recipe_;
  std::map<std::string, MeshNodes> made_;
};

MeshNodes Construction::make_nodes(const RecipeNodes& recipe) const {
  NodePlace place{.path = recipe.path, .name = recipe.name, .before = made_, .threads = threads_};
  for (const NamedCells& dataset : datasets_) {
    if (dataset.name != recipe.name) continue;
    place.cells = &dataset.cells;
    place.grids = dataset.grids;
    place.arithmetic = options_.coordinates;
  }
  MeshNodes nodes = made_for(recipe.path, [&] { return recipe.kind->make(place); });
  for (const NamedCells& dataset : datasets_)
    if (recipe.is_data && dataset.name == recipe.name) nodes.field = dataset.field;
  const int64_t count = nodes.set.num_nodes();
  if (count == 0) {
    throw ConfigError(recipe.path, concat("there are no nodes of '", recipe.name, "'"),
                      "a finer mesh, or a larger margin around an area");
  }
  const int64_t cells = place.cells ? place.cells->num_points() : 0;
  if (cells > 0 && count != cells) {
    const auto* grid = recipe.kind.as<GaussianGridKind>();
    throw ConfigError(recipe.path,
                      concat(grid ? "grid " + grid->grid : "nodes '" + recipe.name + "'", " has ",
                             count, " points, the dataset has ", cells));
  }
  if (place.cells) nodes.grids = place.grids;
  return nodes;
}

// More hidden than data nodes is odd, but has its uses; beyond this most of them hear nothing. A
// graph that is listed may be anything.
void Construction::check_sizes() const {
  if (options_.is_long()) return;
  const int64_t num_hidden = made_.at("hidden").set.num_nodes();
  for (const NamedCells& dataset : datasets_) {
    const int64_t num_data = made_.at(dataset.name).set.num_nodes();
    if (num_hidden <= kMostHiddenPerData * num_data) continue;
    const auto refinement = options_.hidden.kind->refinement();
    throw ConfigError(
        refinement ? "graph.hidden.refinement" : "graph.hidden",
        concat(refinement ? concat("refinement ", *refinement) : "the mesh", " has ", num_hidden,
               " hidden nodes, but there are only ", num_data, " data nodes"),
        concat("at most ", kMostHiddenPerData, " hidden nodes per data node"));
  }
}

EdgeList Construction::make_edges(const RecipeEdges& recipe) const {
  EdgeList all;
  for (size_t i = 0; i < recipe.builders.size(); ++i) {
    const RecipeEdges::Builder& builder = recipe.builders[i];
    const EdgePlace place = place_of(recipe, builder.path);
    builder.kind->check(place);
    EdgeList edges = made_for(builder.path, [&] { return builder.kind->make(place); });
    all = i == 0 ? std::move(edges) : merge_edges(all, edges);
  }
  require_edges(all, recipe.builders.front().path);
  return all;
}

void Construction::add_attributes(const RecipeEdges& recipe, const NodeSet& source,
                                  const NodeSet& target, EdgeSet& edges) const {
  const EdgeEnds ends{source, target, edges.source_index, edges.target_index, threads_};
  for (const RecipeEdges::AttributePath& attribute : recipe.attributes) {
    EdgeValues<float> values = attribute.kind->make(ends, attribute.path, attribute.norm_path);
    edges.attributes[attribute.name] = {values.width, std::move(values.rows)};
  }
}

void Construction::post_process(Graph& graph) const {
  const auto recompute = [&](EdgeSet& edges) {
    for (const RecipeEdges& recipe : recipe_.edges)
      if (recipe.source == edges.source && recipe.target == edges.target)
        add_attributes(recipe, graph.nodes(edges.source), graph.nodes(edges.target), edges);
  };
  for (size_t i = 0; i < options_.post_process.size(); ++i) {
    const auto& kind = options_.post_process[i].kind;
    const std::string path = concat("graph.post_process.", i);
    std::vector<int64_t> before;
    for (const NamedCells& dataset : datasets_)
      before.push_back(graph.nodes(dataset.name).num_nodes());
    made_for(path, [&] { kind->apply({graph, path, recompute}); });
    for (size_t d = 0; d < datasets_.size(); ++d) {
      const int64_t removed = before[d] - graph.nodes(datasets_[d].name).num_nodes();
      if (removed == 0) continue;
      throw ConfigError(
          path,
          concat("removes ", removed, " cells of the dataset '", datasets_[d].name,
                 "', which has fields for all of them"),
          "thin the dataset itself (data.dataset: thinning, area), or keep its nodes");
    }
  }
}

// Takes away the attributes that only others need. Changes of the graph may still read them and
// compute them again.
void drop_private_attributes(Graph& graph) {
  const auto is_private = [](const auto& entry) { return entry.first.starts_with('_'); };
  for (NodeSet& nodes : graph.node_sets)
    std::erase_if(nodes.attributes, is_private);
  for (EdgeSet& edges : graph.edge_sets)
    std::erase_if(edges.attributes, is_private);
}

// The graph of all node sets and these edges.
Graph Construction::taken_apart(std::vector<EdgeSet> edge_sets) {
  Graph graph;
  for (const RecipeNodes& nodes : recipe_.nodes)
    graph.node_sets.push_back(std::move(made_.at(nodes.name).set));
  made_.clear();
  graph.edge_sets = std::move(edge_sets);
  return graph;
}

Graph Construction::build(GraphReport* report) {
  Stopwatch stopwatch;
  for (const RecipeNodes& recipe : recipe_.nodes) {
    MeshNodes& nodes = made_.emplace(recipe.name, make_nodes(recipe)).first->second;
    stopwatch.note("nodes");
    for (const auto& [name, path, options] : recipe.attributes)
      nodes.set.attributes[name] = {1, node_values<float>(*options.kind, nodes, threads_, path)};
    stopwatch.note("node attributes");
  }
  check_sizes();
  std::vector<EdgeSet> edge_sets;
  for (const RecipeEdges& recipe : recipe_.edges) {
    EdgeList list = make_edges(recipe);
    edge_sets.push_back({recipe.source,
                         recipe.target,
                         std::move(list.source_index),
                         std::move(list.target_index),
                         {}});
    stopwatch.note(concat(recipe.source, "->", recipe.target));
  }
  for (size_t i = 0; i < edge_sets.size(); ++i) {
    const RecipeEdges& recipe = recipe_.edges[i];
    add_attributes(recipe, made_.at(recipe.source).set, made_.at(recipe.target).set, edge_sets[i]);
  }
  stopwatch.note("edge attributes");
  Graph graph = taken_apart(std::move(edge_sets));
  if (!options_.post_process.empty()) {
    post_process(graph);
    stopwatch.note("post-processing");
  }
  drop_private_attributes(graph);
  if (report) {
    *report = report_of(graph);
    report->parts = stopwatch.parts();
  }
  return graph;
}

// True if the outline makes the coordinates of a node set: of data, of sets whose number is not
// known without, and where sets made later may look at them.
bool Construction::has_places(size_t number) const {
  const RecipeNodes& recipe = recipe_.nodes[number];
  if (recipe.is_data || !recipe.kind->num_nodes()) return true;
  return std::any_of(recipe_.nodes.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                     recipe_.nodes.end(), [](const RecipeNodes& later) {
                       return later.kind->limits() || (!later.is_data && !later.kind->num_nodes());
                     });
}

// True if an attribute that stands later, or the area of a node set made later, is made of this
// one.
bool Construction::is_read(size_t number, size_t attribute) const {
  const RecipeNodes& nodes = recipe_.nodes[number];
  const std::string& name = nodes.attributes[attribute].name;
  for (size_t a = attribute + 1; a < nodes.attributes.size(); ++a)
    if (contains(nodes.attributes[a].options.kind->masks_read(), name)) return true;
  for (size_t n = number + 1; n < recipe_.nodes.size(); ++n) {
    const AreaOptions* area = recipe_.nodes[n].kind->limits();
    if (area && area->reference == nodes.name && area->mask == name) return true;
  }
  return false;
}

// As many nodes as there will be, at no place.
MeshNodes counted_nodes(const RecipeNodes& recipe) {
  MeshNodes nodes{.set = {recipe.name, {}, {}, {}}};
  nodes.set.lat_rad.resize(static_cast<size_t>(recipe.kind->num_nodes().value()));
  nodes.set.lon_rad.resize(nodes.set.lat_rad.size());
  if (const auto refinement = recipe.kind->refinement()) {
    nodes.tri.emplace();
    nodes.tri->refinement = *refinement;
  }
  return nodes;
}

Graph Construction::outline() {
  for (size_t i = 0; i < recipe_.nodes.size(); ++i) {
    const RecipeNodes& recipe = recipe_.nodes[i];
    const bool placed = has_places(i);
    MeshNodes& nodes =
        made_.emplace(recipe.name, placed ? make_nodes(recipe) : counted_nodes(recipe))
            .first->second;
    for (size_t a = 0; a < recipe.attributes.size(); ++a) {
      const auto& [name, path, options] = recipe.attributes[a];
      Attribute& attribute = nodes.set.attributes[name];
      // Gaussian grids have every point once.
      if (placed && !recipe.kind.as<GaussianGridKind>())
        options.kind->check_places(nodes, threads_);
      if (options.kind->is_mask() || (placed && is_read(i, a)))
        attribute.values = node_values<float>(*options.kind, nodes, threads_, path);
    }
  }
  check_sizes();
  std::vector<EdgeSet> edge_sets;
  for (const RecipeEdges& recipe : recipe_.edges) {
    for (const RecipeEdges::Builder& builder : recipe.builders)
      builder.kind->check(place_of(recipe, builder.path));
    EdgeSet& edges = edge_sets.emplace_back(EdgeSet{recipe.source, recipe.target, {}, {}, {}});
    for (const RecipeEdges::AttributePath& attribute : recipe.attributes)
      edges.attributes[attribute.name] = {attribute.kind->width(), {}};
  }
  Graph graph = taken_apart(std::move(edge_sets));
  drop_private_attributes(graph);
  return graph;
}

// How far a node of a given graph may be from its cell [rad], 6 m: single precision has steps of
// half as much, and another order of conversions ends in another one.
constexpr double kSamePlace_rad = 1e-6;

// True if two nodes are in the same place: to the bit where the graph was built here, whatever turn
// longitudes are counted in and up to rounding where it is given.
bool same_place(const NodeSet& a, const NodeSet& b, size_t i, bool given) {
  if (a.lat_rad[i] == b.lat_rad[i] && a.lon_rad[i] == b.lon_rad[i]) return true;
  if (!given) return false;
  const double lat = static_cast<double>(a.lat_rad[i]), other = static_cast<double>(b.lat_rad[i]);
  const double lon_apart = std::remainder(
      static_cast<double>(a.lon_rad[i]) - static_cast<double>(b.lon_rad[i]), 2.0 * M_PI);
  return std::hypot(lat - other, lon_apart * std::cos(lat)) <= kSamePlace_rad;
}

// Throws ConfigError unless the stored data nodes are the ones of this run.
void check_same_nodes(const NodeSet& stored, const NodeSet& wanted, const GraphOptions& options) {
  const std::string& file = options.file;
  const std::string hint =
      options.given ? "a given graph must have the cells of the dataset, in their order"
                    : "delete the file to have the graph built again, or name another one";
  if (stored.num_nodes() != wanted.num_nodes()) {
    throw ConfigError("graph.file",
                      concat("'", file, "' has ", stored.num_nodes(), " ", wanted.name,
                             " nodes, this run has ", wanted.num_nodes()),
                      hint);
  }
  for (size_t i = 0; i < stored.lat_rad.size(); ++i) {
    if (same_place(stored, wanted, i, options.given)) continue;
    throw ConfigError(
        "graph.file",
        concat("'", file, "' was built for other coordinates: ", wanted.name, " node ", i,
               " is at (", stored.lat_rad[i], ", ", stored.lon_rad[i], ") rad, in this run at (",
               wanted.lat_rad[i], ", ", wanted.lon_rad[i], ")"),
        hint);
  }
}

}  // namespace

namespace {

// Names the fields that attributes of the cells of datasets are made of, by their content.
std::string fields_text(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  std::string text;
  const auto add = [&](const NamedCells& dataset, const NodeAttributeKind& kind,
                       const std::string& path) {
    for (const std::string& variable : kind.fields_read()) {
      if (!dataset.field) continue;
      const std::vector<float> values = dataset.field(variable, path + ".variable");
      Sha256 hash;
      hash.update(values.data(), values.size() * sizeof(float));
      text += concat("\n", dataset.name, "/", variable, ": ", hash.finish());
    }
  };
  for (const NamedCells& dataset : datasets) {
    add(dataset, *options.area_weight.kind, "graph.area_weight");
    for (const auto& [name, set] : options.nodes) {
      if (name != dataset.name) continue;
      for (const auto& [key, attribute] : set.attributes)
        add(dataset, *attribute.kind, concat("graph.nodes.", name, ".attributes.", key));
    }
  }
  return text;
}

}  // namespace

std::string build_hash(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  const bool from_dataset = options.grid == "dataset" || options.is_long();
  std::string grids;
  for (const NamedCells& dataset : datasets) {
    if (dataset.grids.empty() || !from_dataset) continue;
    grids += concat("\n", dataset.name, ":");
    for (const int64_t cells : dataset.grids)
      grids += concat(" ", cells);
  }
  const std::string hash = options_hash(options), fields = fields_text(options, datasets);
  return grids.empty() && fields.empty() ? hash : sha256_hex(hash + grids + fields);
}

Graph build_graph(const GraphOptions& options, const Coordinates& dataset, GraphReport* report) {
  return build_joint_graph(options, single(dataset), report);
}

Graph build_joint_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                        GraphReport* report) {
  return Construction(options, datasets).build(report);
}

Graph graph_outline(const GraphOptions& options, const Coordinates& dataset) {
  return joint_graph_outline(options, single(dataset));
}

Graph joint_graph_outline(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  return Construction(options, datasets).outline();
}

Graph load_or_build_graph(const GraphOptions& options, const Coordinates& dataset,
                          GraphReport* report) {
  return load_or_build_joint_graph(options, single(dataset), report);
}

Graph load_or_build_joint_graph(const GraphOptions& options,
                                const std::vector<NamedCells>& datasets, GraphReport* report) {
  options.validate("graph");
  const bool is_there = !options.file.empty() && path_exists(options.file);
  if (options.given && !is_there) {
    throw ConfigError("graph.file", concat("'", options.file, "' does not exist"),
                      "graph.given takes the graph from it: `aifs-train graph import` makes one");
  }
  if (!is_there) {
    // Building may take minutes: not for a file that cannot be written.
    if (!options.file.empty()) {
      constexpr double kQuiet_s = 600.0;  // writing may take minutes
      const fs::path file = absolute_path(options.file);
      check_writable(file.parent_path());
      remove_stale_files(file.parent_path(), file.filename().string() + ".tmp-", kQuiet_s);
    }
    Graph graph = build_joint_graph(options, datasets, report);
    if (!options.file.empty()) save_graph(options.file, graph, build_hash(options, datasets));
    return graph;
  }
  StoredGraph stored = load_graph(options.file);
  if (!options.given && stored.options_hash != build_hash(options, datasets)) {
    const bool is_import = stored.options_hash == kGivenGraph;
    throw ConfigError("graph.file",
                      concat("'", options.file,
                             is_import ? "' was imported, and not built with the options of the "
                                         "graph"
                                       : "' was built with other options of the graph, or for a "
                                         "dataset that is combined of other grids"),
                      is_import ? "graph.given takes it as it is"
                                : "delete the file to have the graph built again, or name another "
                                  "one");
  }
  for (const NodeSet& wanted : Construction(options, datasets).data_nodes()) {
    const auto has = [&](const NodeSet& set) { return set.name == wanted.name; };
    if (std::none_of(stored.graph.node_sets.begin(), stored.graph.node_sets.end(), has)) {
      throw ConfigError(
          "graph.file",
          concat("'", options.file, "' has no nodes of the dataset '", wanted.name, "'"),
          options.given ? "name the datasets of the run as the graph does (data.datasets)"
                        : "delete the file to have the graph built again, or name another one");
    }
    check_same_nodes(stored.graph.nodes(wanted.name), wanted, options);
  }
  if (report) *report = report_of(stored.graph);
  return std::move(stored.graph);
}

}  // namespace aifs::graph
