// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tools/commands.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/graph_tools/globe_page.h"
#include "app/graph_tools/graph_summary.h"
#include "app/run/exit_codes.h"
#include "app/run/graph_tensors.h"
#include "app/run/make_data.h"
#include "app/run/model_graph.h"
#include "app/run/network_plan.h"
#include "app/run/run_config.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/join.h"
#include "core/log.h"
#include "core/safetensors.h"
#include "graph/builder.h"
#include "graph/graph_difference.h"
#include "graph/graph_file.h"
#include "graph/recipe.h"
#include "graph/stored_graph.h"

namespace aifs::app {

namespace {

// A little more than a quarter and a whole turn, for rounding.
constexpr float kMostLatitude_rad = 1.5708F, kMostLongitude_rad = 6.2832F;

void put(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

// The datasets of a configuration as the graph sees them.
class Cells {
 public:
  explicit Cells(const RunConfig& config) {
    const std::vector<std::string> names = config.data.names();
    if (config.graph.grid != "dataset" && !config.graph.is_long() && names.size() == 1) {
      named_.push_back({names.front(), none_});  // the grid has a name: no dataset is needed
    } else {
      parts_ = make_datasets(config, open_stores(config));
      cells_.emplace(parts_);
      named_ = cells_->named();
    }
  }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  const std::vector<graph::NamedCells>& named() const { return named_; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const graph::NamedCells& cells : named_)
      names.push_back(cells.name);
    return names;
  }

 private:
  graph::Coordinates none_;
  std::vector<DataParts> parts_;
  std::optional<DataCells> cells_;
  std::vector<graph::NamedCells> named_;
};

RunConfig read_config(const GraphConfig& config) {
  RunConfig read = load_config(config.file, config.overrides);
  log::set_level(static_cast<log::Level>(read.run.log_level));
  return read;
}

// A graph to look at, and what asked for it.
struct Source {
  graph::Graph graph;
  std::optional<graph::Recipe> recipe;  // none: a file
  std::string title;
  std::optional<RunConfig> config = {};  // none: a file
  std::string made_by = {};              // of a file: what its graph comes from, if it says so
};

Source read_file_source(const std::string& file) {
  graph::StoredGraph stored = graph::load_graph(file);
  return {std::move(stored.graph), {}, fs::path(file).filename().string(), {}, stored.origin};
}

Source read_source(const std::string& file, const GraphConfig& config) {
  if (file.empty() == config.file.empty()) {
    throw ConfigError(
        "", file.empty() ? "no graph is named" : "a file and a configuration are named",
        "name a graph file, or the configuration that it is built from: --config FILE");
  }
  if (!file.empty()) return read_file_source(file);
  RunConfig options = read_config(config);
  const Cells cells(options);
  if (!options.graph.given) {
    options.graph.file = graph::stored_graph(options.graph, cells.named());
    options.graph.cache.clear();  // nothing is written
  }
  Source source{.graph = graph::load_or_build_joint_graph(options.graph, cells.named()),
                .recipe = {},
                .title = fs::path(config.file).filename().string()};
  if (!options.graph.given) source.recipe = graph::recipe_of(options.graph, cells.names());
  source.config = std::move(options);
  return source;
}

// Leaves the named sets, and the edges among them.
void choose_sets(graph::Graph& graph, const std::vector<std::string>& chosen) {
  if (chosen.empty()) return;
  std::vector<std::string> names;
  for (const graph::NodeSet& nodes : graph.node_sets)
    names.push_back(nodes.name);
  for (const std::string& name : chosen) {
    if (contains(names, name)) continue;
    throw ConfigError("--sets", concat("the graph has no nodes '", name, "'"),
                      nearest_names(name, names));
  }
  std::erase_if(graph.node_sets, [&](const auto& nodes) { return !contains(chosen, nodes.name); });
  std::erase_if(graph.edge_sets, [&](const auto& edges) {
    return !contains(chosen, edges.source) || !contains(chosen, edges.target);
  });
}

// A file that a command makes, to be tried before work that takes its time.
fs::path output_file(const std::string& name) {
  const fs::path file = absolute_path(name);
  if (folder_exists(file)) throw ConfigError("--out", concat("'", name, "' is a folder"));
  check_writable(file.parent_path());
  return file;
}

int build(const GraphCommand& c, const GraphConfig& config) {
  if (config.file.empty())
    throw ConfigError("", "no configuration is named", "name it: --config FILE");
  RunConfig options = read_config(config);
  if (options.graph.given)
    throw ConfigError("graph.given", "is true: the graph is there, and nothing is built");
  const fs::path file = output_file(c.out);
  options.graph.file.clear();
  options.graph.cache.clear();
  const Cells cells(options);
  graph::GraphReport report;
  const graph::Graph graph = graph::build_joint_graph(options.graph, cells.named(), &report);
  put(report.text());
  for (const std::string& warning : graph_warnings(options, graph, report))
    log::warning(warning);
  graph::save_graph(file, graph, graph::build_hash(options.graph, cells.named()));
  log::info("wrote '", c.out, "', to be named in graph.file");
  return kSuccess;
}

struct Findings {
  graph::GraphStatistics statistics;
  std::vector<graph::UnconnectedNodes> unconnected = {};
};

Findings look_at(const Source& source) {
  Findings found{.statistics = graph::statistics_of(source.graph)};
  found.unconnected = graph::unconnected_nodes(found.statistics);
  if (source.config) leave_out_given(found.unconnected, *source.config, source.graph);
  graph::explain(found.unconnected, source.graph, source.recipe ? &*source.recipe : nullptr);
  return found;
}

int info(const GraphCommand& c, const GraphConfig& config) {
  Source source = read_source(c.file, config);
  choose_sets(source.graph, c.sets);
  const Findings found = look_at(source);
  if (!c.json && !source.made_by.empty()) put(concat("from    ", source.made_by, "\n"));
  put(c.json ? summary_json(found.statistics, found.unconnected).dump(1) + "\n"
             : summary_text(found.statistics, found.unconnected));
  return kSuccess;
}

int compare(const GraphCommand& c) {
  const graph::Graph a = graph::load_graph(c.file).graph, b = graph::load_graph(c.other).graph;
  const graph::GraphDifference difference = graph::difference_of(a, b, c.tolerance);
  put(difference.none() ? "the graphs are equal\n"
                        : concat("A is '", c.file, "', B is '", c.other, "'\n", difference.text()));
  return difference.none() ? kSuccess : kDiffers;
}

int plot(const GraphCommand& c, const GraphConfig& config) {
  const fs::path file = output_file(c.out);
  Source source = read_source(c.file, config);
  choose_sets(source.graph, c.sets);
  const Findings found = look_at(source);
  const std::string page =
      globe_page({.graph = source.graph,
                  .statistics = found.statistics,
                  .unconnected = found.unconnected,
                  .title = source.title,
                  .origin = concat("content ", source.graph.content_hash().substr(0, 12)),
                  .max_edges = c.max_edges});
  write_file_atomic(file, page);
  log::info("wrote '", c.out, "', to be opened in a browser");
  return kSuccess;
}

// Returns what the writer of a file of tensors says of where its graph comes from.
std::string origin_of(const SafetensorsFile& tensors) {
  const auto found = tensors.metadata().find("origin");
  return found == tensors.metadata().end() ? "" : found->second;
}

// Throws DataError for a graph without what a network works on, and for names and coordinates that
// no graph of ours has.
void check_import(const graph::Graph& graph, const std::string& file) {
  const auto fail = [&](const std::string& text, const std::string& hint = "") {
    throw DataError(concat("'", file, "': ", text), hint);
  };
  if (graph.node_sets.empty()) {
    fail("there are no nodes in it",
         "tensors are called nodes/SET/latlon_rad and edges/A_to_B/edge_index: "
         "tools/anemoi_graph.py writes such a file");
  }
  if (graph.edge_sets.empty()) fail("there are no edges in it");
  for (const graph::NodeSet& nodes : graph.node_sets) {
    graph::check_set_name(nodes.name, concat("nodes/", nodes.name));
    for (const auto& [name, values] : nodes.attributes)
      graph::check_attribute_name(name, concat("nodes/", nodes.name, "/", name));
    for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
      const float lat = nodes.lat_rad[i], lon = nodes.lon_rad[i];
      if (std::abs(lat) <= kMostLatitude_rad && std::abs(lon) <= kMostLongitude_rad) continue;
      fail(concat("node ", i, " of '", nodes.name, "' is at (", lat, ", ", lon, ") rad"),
           "latitudes are within -pi/2 and pi/2, longitudes within -2 pi and 2 pi");
    }
  }
  for (const graph::EdgeSet& edges : graph.edge_sets) {
    for (const auto& [name, values] : edges.attributes)
      graph::check_attribute_name(name,
                                  concat("edges/", edges.source, "_to_", edges.target, "/", name));
  }
}

int import_tensors(const GraphCommand& c) {
  const fs::path file = output_file(c.out);
  const SafetensorsFile tensors(c.file);
  graph::Graph graph;
  try {
    graph = read_graph_tensors(tensors);
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    throw DataError(concat("'", c.file, "': ", error.what()), error.hint());
  }
  check_import(graph, c.file);
  graph::save_graph(file, graph, graph::kGivenGraph, origin_of(tensors));
  const auto statistics = graph::statistics_of(graph);
  put(summary_text(statistics, graph::unconnected_nodes(statistics)));
  log::info("wrote '", c.out, "', to be named in graph.file, with graph.given: true");
  return kSuccess;
}

}  // namespace

int run_graph_command(const GraphCommand& command, const GraphConfig& config) {
  switch (command.kind) {
    case GraphCommand::Kind::kBuild:
      return build(command, config);
    case GraphCommand::Kind::kInfo:
      return info(command, config);
    case GraphCommand::Kind::kCompare:
      return compare(command);
    case GraphCommand::Kind::kPlot:
      return plot(command, config);
    case GraphCommand::Kind::kImport:
      return import_tensors(command);
  }
  return kInternal;
}

}  // namespace aifs::app
