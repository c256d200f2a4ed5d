// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "core/check.h"
#include "core/join.h"
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
  Construction(const GraphOptions& options, const std::vector<NamedCells>& datasets,
               Peers* peers = nullptr)
      : options_(options),
        datasets_(datasets),
        threads_(options.threads.value_or(0)),
        peers_(peers) {
    options.validate("graph");
    if (datasets.size() > 1 && options.grid != "dataset") {
      throw ConfigError(
          "graph.grid",
          concat("is '", options.grid, "', but there are ", datasets.size(), " datasets"),
          "use \"dataset\": each has its own cells");
    }
    recipe_ = recipe_of(options, names_of(datasets));
  }

  std::vector<NodeSet> data_nodes() const {
    std::vector<NodeSet> sets;
    for (const RecipeNodes& nodes : recipe_.nodes)
      if (nodes.is_data) sets.push_back(make_nodes(nodes).set);
    return sets;
  }
  Graph build(GraphReport* report);
  GraphSlice build_slice(GraphReport* report);
  std::string needs_whole() const;
  Graph outline();

 private:
  MeshNodes make_nodes(const RecipeNodes& recipe) const;
  bool has_places(size_t number) const;
  bool is_read(size_t number, size_t attribute) const;
  void check_sizes() const;
  EdgePlace place_of(const RecipeEdges& edges, const std::string& path) const {
    return {path, made_.at(edges.source), made_.at(edges.target), threads_};
  }
  void make_all_nodes(Stopwatch& stopwatch);
  EdgeList make_edges(const RecipeEdges& recipe) const;
  EdgeList make_slice(const RecipeEdges& recipe, EdgeRange& range) const;
  void add_attributes(const RecipeEdges& recipe, const NodeSet& source, const NodeSet& target,
                      EdgeSet& edges) const;
  void post_process(Graph& graph) const;
  Graph taken_apart(std::vector<EdgeSet> edge_sets);

  const GraphOptions& options_;
  const std::vector<NamedCells>& datasets_;
  int64_t threads_;
  Peers* peers_;  // who build slices; null: all of it is built here
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
  nodes.peers = peers_;
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

// This rank's range of the edges.
EdgeList Construction::make_slice(const RecipeEdges& recipe, EdgeRange& range) const {
  const RecipeEdges::Builder& first = recipe.builders.front();
  if (recipe.builders.size() == 1 && first.kind->divides()) {
    EdgePlace place = place_of(recipe, first.path);
    place.peers = peers_;
    first.kind->check(place);
    const EdgeList part = made_for(first.path, [&] { return first.kind->make(place); });
    range = edge_range(sum_over(*peers_, part.num_edges()), peers_->rank(), peers_->size());
    if (range.total == 0) require_edges(part, first.path);
    return in_ranges(part, *peers_);
  }
  const EdgeList all = make_edges(recipe);
  range = edge_range(all.num_edges(), peers_->rank(), peers_->size());
  return {{all.source_index.begin() + range.begin, all.source_index.begin() + range.end},
          {all.target_index.begin() + range.begin, all.target_index.begin() + range.end}};
}

void Construction::add_attributes(const RecipeEdges& recipe, const NodeSet& source,
                                  const NodeSet& target, EdgeSet& edges) const {
  const EdgeEnds ends{source, target, edges.source_index, edges.target_index, threads_, peers_};
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

void Construction::make_all_nodes(Stopwatch& stopwatch) {
  for (const RecipeNodes& recipe : recipe_.nodes) {
    MeshNodes& nodes = made_.emplace(recipe.name, make_nodes(recipe)).first->second;
    stopwatch.note("nodes");
    for (const auto& [name, path, options] : recipe.attributes)
      nodes.set.attributes[name] = {1, node_values<float>(*options.kind, nodes, threads_, path)};
    stopwatch.note("node attributes");
  }
  check_sizes();
}

// Returns why ranks cannot build slices, or "".
std::string Construction::needs_whole() const {
  if (!options_.post_process.empty()) return "graph.post_process changes the finished graph";
  for (const RecipeNodes& nodes : recipe_.nodes) {
    if (!nodes.kind->coordinate_file().empty())
      return concat("nodes '", nodes.name, "' are read from a file, which only one rank does");
    for (const auto& [name, path, options] : nodes.attributes)
      if (!options.kind->fields_read().empty())
        return concat(path, " is made of a field of the dataset, which only one rank reads");
  }
  for (const RecipeEdges& edges : recipe_.edges)
    for (const RecipeEdges::AttributePath& attribute : edges.attributes)
      if (attribute.kind->needs_targets())
        return concat(attribute.path, " depends on all edges of a target");
  return "";
}

GraphSlice Construction::build_slice(GraphReport* report) {
  Stopwatch stopwatch;
  make_all_nodes(stopwatch);
  GraphSlice slice;
  for (const RecipeEdges& recipe : recipe_.edges) {
    EdgeList list = make_slice(recipe, slice.ranges.emplace_back());
    EdgeSet& edges = slice.graph.edge_sets.emplace_back();
    edges.source = recipe.source;
    edges.target = recipe.target;
    edges.source_index = std::move(list.source_index);
    edges.target_index = std::move(list.target_index);
    stopwatch.note(concat(recipe.source, "->", recipe.target));
    add_attributes(recipe, made_.at(recipe.source).set, made_.at(recipe.target).set, edges);
    stopwatch.note("edge attributes");
  }
  slice.graph = taken_apart(std::move(slice.graph.edge_sets));
  drop_private_attributes(slice.graph);
  if (report) *report = {};
  if (report) report->parts = stopwatch.parts();
  return slice;
}

Graph Construction::build(GraphReport* report) {
  Stopwatch stopwatch;
  make_all_nodes(stopwatch);
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

}  // namespace

Graph build_graph(const GraphOptions& options, const Coordinates& dataset, GraphReport* report) {
  return build_joint_graph(options, single(dataset), report);
}

Graph build_joint_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                        GraphReport* report) {
  return Construction(options, datasets).build(report);
}

bool builds_slices(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                   std::string* reason) {
  const std::string why = Construction(options, datasets).needs_whole();
  if (reason) *reason = why;
  return why.empty();
}

GraphSlice build_slice(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                       Peers& peers, GraphReport* report) {
  return Construction(options, datasets, &peers).build_slice(report);
}

Graph graph_outline(const GraphOptions& options, const Coordinates& dataset) {
  return joint_graph_outline(options, single(dataset));
}

Graph joint_graph_outline(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  return Construction(options, datasets).outline();
}

std::vector<NodeSet> graph_data_nodes(const GraphOptions& options,
                                      const std::vector<NamedCells>& datasets) {
  return Construction(options, datasets).data_nodes();
}

}  // namespace aifs::graph
