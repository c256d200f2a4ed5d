// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <algorithm>
#include <chrono>

#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/stale_files.h"
#include "graph/edges/edge_attributes.h"
#include "graph/edges/multi_scale_edges.h"
#include "graph/edges/neighbour_edges.h"
#include "graph/graph_file.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/tri_nodes.h"
#include "graph/weights/planar_weights.h"

namespace aifs::graph {

namespace {

// More hidden than data nodes is odd, but has its uses; beyond this most of them hear nothing.
constexpr int64_t kMostHiddenPerData = 4;

class Stopwatch {
 public:
  // Notes the time since the last call (or the construction).
  void note(const std::string& name) {
    const auto now = std::chrono::steady_clock::now();
    parts_.push_back({name, std::chrono::duration<double>(now - last_).count()});
    last_ = now;
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

NodeSet data_nodes(const GraphOptions& options, const NamedCells& of) {
  const Coordinates& dataset = of.cells;
  Coordinates named;
  if (options.grid != "dataset") {
    named = gaussian_coordinates(parse_gaussian_grid(options.grid));
    if (dataset.num_points() > 0 && dataset.num_points() != named.num_points()) {
      throw ConfigError("graph.grid", concat("grid ", options.grid, " has ", named.num_points(),
                                             " points, the dataset has ", dataset.num_points()));
    }
  }
  const Coordinates& used = options.grid == "dataset" ? dataset : named;
  if (used.num_points() == 0) throw ConfigError("graph.grid", "the dataset has no coordinates");
  return {of.name,
          radians_from_degrees(used.lat_deg, options.coordinates),
          radians_from_degrees(used.lon_deg, options.coordinates),
          {}};
}

std::vector<NodeSet> all_data_nodes(const GraphOptions& options,
                                    const std::vector<NamedCells>& datasets) {
  if (datasets.size() > 1 && options.grid != "dataset") {
    throw ConfigError(
        "graph.grid",
        concat("is '", options.grid, "', but there are ", datasets.size(), " datasets"),
        "use \"dataset\": each has its own cells");
  }
  std::vector<NodeSet> sets;
  for (const NamedCells& dataset : datasets)
    sets.push_back(data_nodes(options, dataset));
  return sets;
}

void check_sizes(const GraphOptions& options, int64_t num_data) {
  const int64_t num_hidden = icosphere_vertices(options.hidden.refinement);
  if (num_hidden > kMostHiddenPerData * num_data) {
    throw ConfigError("graph.hidden.refinement",
                      concat("refinement ", options.hidden.refinement, " has ", num_hidden,
                             " hidden nodes, but there are only ", num_data, " data nodes"),
                      concat("at most ", kMostHiddenPerData, " hidden nodes per data node"));
  }
  const auto check_neighbours = [](const MapperEdgeOptions& edges, const char* path,
                                   int64_t num_sources) {
    if (edges.kind != MapperEdgeKind::kKnn || edges.num_neighbours <= num_sources) return;
    throw ConfigError(path, concat(edges.num_neighbours, " neighbours of ", num_sources, " nodes"));
  };
  check_neighbours(options.encoder, "graph.encoder.num_neighbours", num_data);
  check_neighbours(options.decoder, "graph.decoder.num_neighbours", num_hidden);
}

std::vector<double> raw_area_weights(AreaWeightKind kind, const NodeSet& nodes, int64_t threads) {
  switch (kind) {
    case AreaWeightKind::kSpherical:
      return spherical_area_weights(nodes.lat_rad, nodes.lon_rad, threads);
    case AreaWeightKind::kUniform:
      return std::vector<double>(nodes.lat_rad.size(), 1.0);
    case AreaWeightKind::kCosineLatitude:
      return cosine_latitude_weights(nodes.lat_rad);
    case AreaWeightKind::kIsolatitude:
      return isolatitude_weights(nodes.lat_rad);
    case AreaWeightKind::kPlanar:
      return planar_weights(nodes.lat_rad, nodes.lon_rad, threads).areas;
  }
  throw Error("unknown kind of area weight");
}

// `path` is that of the norm.
void scale(Norm norm, std::vector<float>& values, const char* path) {
  try {
    normalise(norm, values);
  } catch (const NumericalError& error) {
    throw ConfigError(path, error.what(), "choose another norm, for example \"none\"");
  }
}

Attribute area_weight(const AreaWeightOptions& options, const NodeSet& nodes, int64_t threads) {
  const auto raw = raw_area_weights(options.kind, nodes, threads);
  Attribute attribute{1, {raw.begin(), raw.end()}};
  scale(options.norm, attribute.values, "graph.area_weight.norm");
  return attribute;
}

EdgeList mapper_edges(const MapperEdgeOptions& options, const NodeSet& source,
                      const NodeSet& target, int64_t threads) {
  if (options.kind == MapperEdgeKind::kKnn) {
    return knn_edges(source, target, options.num_neighbours, threads);
  }
  const CutOff cut_off{options.cutoff_factor, std::nullopt, options.max_neighbours};
  return cut_off_edges(source, target, cut_off, threads);
}

EdgeSet edge_set(const GraphOptions& options, const NodeSet& source, const NodeSet& target,
                 EdgeList edges, int64_t threads) {
  EdgeSet set{
      source.name, target.name, std::move(edges.source_index), std::move(edges.target_index), {}};
  const EdgeEnds ends{source, target, set.source_index, set.target_index, threads};
  Attribute length{1, edge_length<float>(ends)}, dirs{2, edge_direction<float>(ends)};
  scale(options.edge_length_norm, length.values, "graph.edge_length_norm");
  scale(options.edge_dirs_norm, dirs.values, "graph.edge_dirs_norm");
  set.attributes = {{"edge_length", std::move(length)}, {"edge_dirs", std::move(dirs)}};
  return set;
}

void require_edges(const EdgeList& edges, const char* path) {
  if (edges.num_edges() > 0) return;
  throw ConfigError(path, "no edge was found", "a larger cut-off, or the kind \"knn\"");
}

// Throws ConfigError unless the stored data nodes are the ones of this run.
void check_same_nodes(const NodeSet& stored, const NodeSet& wanted, const std::string& file) {
  const std::string hint = "delete the file to have the graph built again, or name another one";
  if (stored.num_nodes() != wanted.num_nodes()) {
    throw ConfigError("graph.file",
                      concat("'", file, "' has ", stored.num_nodes(), " ", wanted.name,
                             " nodes, this run has ", wanted.num_nodes()),
                      hint);
  }
  for (size_t i = 0; i < stored.lat_rad.size(); ++i) {
    if (stored.lat_rad[i] == wanted.lat_rad[i] && stored.lon_rad[i] == wanted.lon_rad[i]) continue;
    throw ConfigError(
        "graph.file",
        concat("'", file, "' was built for other coordinates: ", wanted.name, " node ", i,
               " is at (", stored.lat_rad[i], ", ", stored.lon_rad[i], ") rad, in this run at (",
               wanted.lat_rad[i], ", ", wanted.lon_rad[i], ")"),
        hint);
  }
}

}  // namespace

Graph build_graph(const GraphOptions& options, const Coordinates& dataset, GraphReport* report) {
  return build_joint_graph(options, single(dataset), report);
}

Graph build_joint_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                        GraphReport* report) {
  options.validate("graph");
  const int64_t threads = options.threads.value_or(0);
  Stopwatch stopwatch;
  std::vector<NodeSet> data = all_data_nodes(options, datasets);
  for (const NodeSet& nodes : data)
    check_sizes(options, nodes.num_nodes());
  TriNodes mesh = tri_nodes(options.hidden.refinement);
  const NodeSet hidden{"hidden", mesh.lat_rad, mesh.lon_rad, {}};
  stopwatch.note("nodes");
  for (NodeSet& nodes : data)
    nodes.attributes["area_weight"] = area_weight(options.area_weight, nodes, threads);
  stopwatch.note("area weights");
  std::vector<EdgeList> encoders, decoders;
  for (const NodeSet& nodes : data) {
    encoders.push_back(mapper_edges(options.encoder, nodes, hidden, threads));
    require_edges(encoders.back(), "graph.encoder");
  }
  stopwatch.note("encoder edges");
  EdgeList processor = multi_scale_edges(
      mesh, {options.processor.x_hops, options.processor.levels_of(options.hidden.refinement)});
  stopwatch.note("processor edges");
  for (const NodeSet& nodes : data) {
    decoders.push_back(mapper_edges(options.decoder, hidden, nodes, threads));
    require_edges(decoders.back(), "graph.decoder");
  }
  stopwatch.note("decoder edges");
  Graph graph;
  for (size_t i = 0; i < data.size(); ++i)
    graph.edge_sets.push_back(edge_set(options, data[i], hidden, std::move(encoders[i]), threads));
  graph.edge_sets.push_back(edge_set(options, hidden, hidden, std::move(processor), threads));
  for (size_t i = 0; i < data.size(); ++i)
    graph.edge_sets.push_back(edge_set(options, hidden, data[i], std::move(decoders[i]), threads));
  graph.node_sets = std::move(data);
  graph.node_sets.push_back(hidden);
  stopwatch.note("edge attributes");
  if (report) {
    *report = report_of(graph);
    report->parts = stopwatch.parts();
  }
  return graph;
}

Graph graph_outline(const GraphOptions& options, const Coordinates& dataset) {
  return joint_graph_outline(options, single(dataset));
}

Graph joint_graph_outline(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  options.validate("graph");
  std::vector<NodeSet> data = all_data_nodes(options, datasets);
  for (NodeSet& nodes : data) {
    check_sizes(options, nodes.num_nodes());
    // Gaussian grids have every point once.
    if (options.area_weight.kind == AreaWeightKind::kSpherical && options.grid == "dataset")
      require_distinct_nodes(nodes.lat_rad, nodes.lon_rad, options.threads.value_or(0));
    nodes.attributes["area_weight"] = {};
  }
  NodeSet hidden{"hidden", {}, {}, {}};
  hidden.lat_rad.resize(static_cast<size_t>(icosphere_vertices(options.hidden.refinement)));
  hidden.lon_rad.resize(hidden.lat_rad.size());
  Graph graph;
  const auto add = [&](const std::string& source, const std::string& target) {
    graph.edge_sets.push_back(
        {source, target, {}, {}, {{"edge_length", {1, {}}}, {"edge_dirs", {2, {}}}}});
  };
  for (const NodeSet& nodes : data)
    add(nodes.name, "hidden");
  add("hidden", "hidden");
  for (const NodeSet& nodes : data)
    add("hidden", nodes.name);
  graph.node_sets = std::move(data);
  graph.node_sets.push_back(std::move(hidden));
  return graph;
}

Graph load_or_build_graph(const GraphOptions& options, const Coordinates& dataset,
                          GraphReport* report) {
  return load_or_build_joint_graph(options, single(dataset), report);
}

Graph load_or_build_joint_graph(const GraphOptions& options,
                                const std::vector<NamedCells>& datasets, GraphReport* report) {
  if (options.file.empty() || !path_exists(options.file)) {
    // Building may take minutes: not for a file that cannot be written.
    if (!options.file.empty()) {
      constexpr double kQuiet_s = 600.0;  // writing may take minutes
      const fs::path file = absolute_path(options.file);
      check_writable(file.parent_path());
      remove_stale_files(file.parent_path(), file.filename().string() + ".tmp-", kQuiet_s);
    }
    Graph graph = build_joint_graph(options, datasets, report);
    if (!options.file.empty()) save_graph(options.file, graph, options_hash(options));
    return graph;
  }
  StoredGraph stored = load_graph(options.file);
  if (stored.options_hash != options_hash(options)) {
    throw ConfigError("graph.file",
                      concat("'", options.file, "' was built with other options of the graph"),
                      "delete the file to have the graph built again, or name another one");
  }
  for (const NodeSet& wanted : all_data_nodes(options, datasets)) {
    const auto has = [&](const NodeSet& set) { return set.name == wanted.name; };
    if (std::none_of(stored.graph.node_sets.begin(), stored.graph.node_sets.end(), has)) {
      throw ConfigError(
          "graph.file",
          concat("'", options.file, "' has no nodes of the dataset '", wanted.name, "'"),
          "delete the file to have the graph built again, or name another one");
    }
    check_same_nodes(stored.graph.nodes(wanted.name), wanted, options.file);
  }
  if (report) *report = report_of(stored.graph);
  return std::move(stored.graph);
}

}  // namespace aifs::graph
