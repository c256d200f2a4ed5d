// SPDX-License-Identifier: Apache-2.0
#include "graph/stored_graph.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/log.h"
#include "core/stale_files.h"
#include "graph/base/content_hash.h"
#include "graph/graph_file.h"
#include "graph/nodes/gaussian_grid.h"

namespace aifs::graph {

namespace {

// To be raised when the same options make another graph: those in a cache are built again.
constexpr const char* kMethod = "aifs-graph-1";

constexpr const char* kDelete =
    "delete the file to have the graph built again, or name another one";

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
void check_same_nodes(const Graph& graph, const NodeSet& wanted, const GraphOptions& options) {
  const std::string& file = options.file;
  const auto has = [&](const NodeSet& set) { return set.name == wanted.name; };
  if (std::none_of(graph.node_sets.begin(), graph.node_sets.end(), has)) {
    throw ConfigError(
        "graph.file", concat("'", file, "' has no nodes of the dataset '", wanted.name, "'"),
        options.given ? "name the datasets of the run as the graph does (data.datasets)" : kDelete);
  }
  const std::string hint =
      options.given ? "a given graph must have the cells of the dataset, in their order" : kDelete;
  const NodeSet& stored = graph.nodes(wanted.name);
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

// True if the options name all data nodes, so that no coordinates need to be compared.
bool names_grid(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  if (options.grid == "dataset" || options.is_long()) return false;
  const int64_t count = parse_gaussian_grid(options.grid).num_points();
  return std::all_of(datasets.begin(), datasets.end(), [&](const NamedCells& dataset) {
    return dataset.cells.num_points() == 0 || dataset.cells.num_points() == count;
  });
}

// The file in the cache of a graph of these options and cells; `hash` is their build_hash().
fs::path cached_file(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                     const std::string& hash) {
  ContentHash key;
  key.text(kMethod);
  key.text(hash);
  if (!names_grid(options, datasets)) {
    for (const NodeSet& nodes : graph_data_nodes(options, datasets)) {
      key.text(nodes.name);
      key.values(std::span<const float>(nodes.lat_rad));
      key.values(std::span<const float>(nodes.lon_rad));
    }
  }
  constexpr size_t kDigits = 32;
  return fs::path(options.cache) / concat("graph-", key.finish().substr(0, kDigits), ".nc");
}

// Builds the graph and stores it under a name that nobody sees before it is complete. Several at
// once do the work several times, and all leave the same.
Graph build_and_store(const PlaceOfGraph& place, const GraphOptions& options,
                      const std::vector<NamedCells>& datasets, GraphReport* report) {
  prepare_place(place);
  Graph graph = build_joint_graph(options, datasets, report);
  const std::string hash = save_graph(place.file, graph, place.options_hash);
  if (report) report->content_hash = hash;
  return graph;
}

// Throws ConfigError for a file that was built with other options than these.
void check_options(const StoredGraph& stored, const GraphOptions& options,
                   const std::vector<NamedCells>& datasets) {
  if (options.given || stored.options_hash == build_hash(options, datasets)) return;
  const bool is_import = stored.options_hash == kGivenGraph;
  throw ConfigError("graph.file",
                    concat("'", options.file,
                           is_import ? "' was imported, and not built with the options of the graph"
                                     : "' was built with other options of the graph, of other "
                                       "files of coordinates, or for a dataset that is combined of "
                                       "other grids"),
                    is_import ? "graph.given takes it as it is" : kDelete);
}

using LoadGraph = StoredGraph(const fs::path&);  // all of a graph, or all but the edges

StoredGraph load_named(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                       LoadGraph* load) {
  StoredGraph stored = load(options.file);
  check_options(stored, options, datasets);
  if (options.given || !names_grid(options, datasets)) {
    for (const NodeSet& wanted : graph_data_nodes(options, datasets))
      check_same_nodes(stored.graph, wanted, options);
  }
  return stored;
}

// The graph of a file in the cache, or nothing if it is not as it was written.
std::optional<StoredGraph> load_cached(const fs::path& path, const std::string& hash,
                                       LoadGraph* load) {
  try {
    StoredGraph stored = load(path);
    if (stored.options_hash != hash) return std::nullopt;
    return stored;
  } catch (const DataError& error) {
    log::warning(error.what(), "; the graph is built again");
    return std::nullopt;
  }
}

Graph reported(StoredGraph stored, GraphReport* report) {
  if (report) *report = report_of(stored.graph);
  if (report) report->content_hash = stored.content_hash;
  return std::move(stored.graph);
}

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

std::string stored_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets) {
  options.validate("graph");
  const fs::path file = options.cache.empty()
                            ? fs::path(options.file)
                            : cached_file(options, datasets, build_hash(options, datasets));
  return !file.empty() && path_exists(file) ? file.string() : "";
}

void prepare_place(const PlaceOfGraph& place) {
  constexpr double kQuiet_s = 600.0;  // writing may take minutes
  const fs::path file = absolute_path(place.file);
  check_writable(file.parent_path());  // building may take minutes
  remove_stale_files(file.parent_path(), file.filename().string() + ".tmp-", kQuiet_s);
}

Graph load_or_build_graph(const GraphOptions& options, const Coordinates& dataset,
                          GraphReport* report) {
  return load_or_build_joint_graph(options, {{"data", dataset}}, report);
}

namespace {

// Where a graph is stored or to be stored, and what is there.
struct FoundGraph {
  fs::path file;     // empty: nowhere
  std::string hash;  // build_hash(); empty for a graph that is loaded from graph.file
  std::optional<StoredGraph> stored = {};
};

FoundGraph find_graph(const GraphOptions& options, const std::vector<NamedCells>& datasets,
                      LoadGraph* load) {
  options.validate("graph");
  if (options.given && !path_exists(options.file))
    throw ConfigError("graph.file", concat("'", options.file, "' does not exist"),
                      "graph.given takes the graph from it: `aifs-train graph import` makes one");
  if (!options.cache.empty()) {
    FoundGraph found{.file = {}, .hash = build_hash(options, datasets)};  // reads files and fields
    found.file = cached_file(options, datasets, found.hash);
    if (path_exists(found.file)) found.stored = load_cached(found.file, found.hash, load);
    return found;
  }
  if (options.file.empty()) return {};
  if (path_exists(options.file)) return {options.file, "", load_named(options, datasets, load)};
  return {options.file, build_hash(options, datasets)};
}

}  // namespace

std::optional<StoredOutline> find_stored_graph(const GraphOptions& options,
                                               const std::vector<NamedCells>& datasets,
                                               PlaceOfGraph* place) {
  FoundGraph found = find_graph(options, datasets, load_outline);
  if (!found.stored) {
    if (place) *place = {found.file.string(), found.hash};
    return std::nullopt;
  }
  return StoredOutline{found.file.string(), std::move(found.stored->graph),
                       found.stored->content_hash};
}

Graph load_or_build_joint_graph(const GraphOptions& options,
                                const std::vector<NamedCells>& datasets, GraphReport* report) {
  FoundGraph found = find_graph(options, datasets, load_graph);
  if (found.stored) return reported(std::move(*found.stored), report);
  if (found.file.empty()) return build_joint_graph(options, datasets, report);
  return build_and_store({found.file.string(), found.hash}, options, datasets, report);
}

}  // namespace aifs::graph
