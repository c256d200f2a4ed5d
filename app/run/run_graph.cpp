// SPDX-License-Identifier: Apache-2.0
#include "app/run/run_graph.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

#include "app/run/failure.h"
#include "app/run/network_plan.h"
#include "app/run/plan.h"
#include "app/run/share.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/join.h"
#include "core/log.h"
#include "core/seconds_since.h"
#include "graph/builder.h"
#include "graph/graph_file.h"
#include "graph/slice_file.h"
#include "graph/stored_graph.h"
#include "parallel/communicator_peers.h"
#include "parallel/together.h"

namespace aifs::app {

namespace {

// Cells of the graph and of the dataset must be the same points, up to rounding of the file.
constexpr double kSamePoint_deg = 1e-3;

// True for edges that a sparse matrix of the loss or of noise is made of.
bool is_for_matrix(const graph::EdgeSet& edges, const RunConfig& config) {
  const bool in_data = edges.source == edges.target && contains(config.data.names(), edges.source);
  const std::string& noise = config.model.ensemble.noise_nodes;
  return in_data ||
         (!noise.empty() && edges.source == noise && edges.target == config.model.meshes().front());
}

// The place of an edge set in the graph; nothing where there is none.
std::optional<size_t> place_of(const graph::Graph& graph, const std::string& source,
                               const std::string& target) {
  for (size_t i = 0; i < graph.edge_sets.size(); ++i)
    if (graph.edge_sets[i].source == source && graph.edge_sets[i].target == target) return i;
  return std::nullopt;
}

// True if every rank finds this very graph under the name of the file. Collective.
bool all_see(const GraphParts& parts, parallel::Communicator& world) {
  return !parallel::on_any_rank(world, graph::stored_content_hash(parts.file) != parts.hash);
}

}  // namespace

void check_same_grid(const graph::NodeSet& nodes, const data::DatasetInfo& info) {
  constexpr double kDegrees = 57.29577951308232;
  const auto mismatch = [&](const std::string& what) {
    return ConfigError("graph.grid", concat("the graph and '", info.name, "' differ: ", what),
                       "use \"dataset\", or the grid that the dataset is on");
  };
  if (nodes.num_nodes() != info.num_nodes()) {
    throw mismatch(concat(nodes.num_nodes(), " nodes and ", info.num_nodes(), " cells"));
  }
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
    const double lat = nodes.lat_rad[i] * kDegrees, lon = nodes.lon_rad[i] * kDegrees;
    const double lon_apart = std::remainder(lon - info.longitudes_deg[i], 360.0);
    if (std::abs(lat - info.latitudes_deg[i]) > kSamePoint_deg ||
        std::abs(lon_apart) * std::cos(nodes.lat_rad[i]) > kSamePoint_deg) {
      throw mismatch(concat("node ", i, " is at ", lat, " N ", lon, " E, the cell at ",
                            info.latitudes_deg[i], " N ", info.longitudes_deg[i], " E"));
    }
  }
}

namespace {

// How ranks that share a sample come by the graph. Of one that they read `parts` gets all but the
// edges.
GraphWay way_of(const RunConfig& config, const std::vector<graph::NamedCells>& cells,
                GraphParts& parts) {
  graph::PlaceOfGraph place;
  if (auto stored = graph::find_stored_graph(config.graph, cells, &place)) {
    parts.graph = std::move(stored->graph);
    parts.hash = stored->content_hash;
    parts.file = absolute_path(stored->file).string();
    return GraphWay::kRead;
  }
  std::string reason;
  if (graph::builds_slices(config.graph, cells, &reason)) {
    if (!place.file.empty()) graph::prepare_place(place);
    parts.file = place.file;
    parts.options_hash = place.options_hash;
    return GraphWay::kBuilt;
  }
  log::info("graph: the main rank builds all of it: ", reason);
  return GraphWay::kSent;
}

}  // namespace

GraphParts make_graph(const RunConfig& config, const std::vector<DataParts>& datasets,
                      bool divides) {
  const auto start = std::chrono::steady_clock::now();
  GraphParts parts;
  const DataCells cells(datasets);
  parts.way = divides ? way_of(config, cells.named(), parts) : GraphWay::kSent;
  if (parts.way == GraphWay::kBuilt) return parts;
  if (parts.way == GraphWay::kSent) {
    parts.graph = graph::load_or_build_joint_graph(config.graph, cells.named(), &parts.report);
    parts.hash =
        parts.report.content_hash.empty() ? parts.graph.content_hash() : parts.report.content_hash;
    graph::measure_lengths(parts.graph, parts.report);
  }
  for (const DataParts& data : datasets)
    check_same_grid(parts.graph.nodes(data.name), data.training->info());
  parts.seconds = seconds_since(start);
  return parts;
}

int64_t GraphParts::num_edges(const std::string& source, const std::string& target) const {
  const auto place = place_of(graph, source, target);
  if (!place) return 0;
  if (!divided) return graph.edge_sets[*place].num_edges();
  const std::vector<int64_t>& edges = divided->traffic[*place].edges;
  return std::accumulate(edges.begin(), edges.end(), int64_t{0});
}

plan::StepInput GraphParts::step_input(const RunConfig& config, const PlanRequest& request) const {
  plan::StepInput input = app::step_input(config, graph, request);
  input.network.totals = plan::GraphTotals::of(
      graph, config.model.meshes(), [&](const std::string& source, const std::string& target) {
        return num_edges(source, target);
      });
  return input;
}

plan::Division GraphParts::division(const plan::StepInput& input) const {
  if (!divided) return plan::divide(input, graph);
  const int64_t ranks = input.layout.model;
  if (ranks > 1) {
    const auto traffic = [&](const std::string& source, const std::string& target) {
      if (const auto place = place_of(graph, source, target)) return divided->traffic[*place];
      return graph::EdgeTraffic{std::vector<int64_t>(static_cast<size_t>(ranks), 0),
                                std::vector<int64_t>(static_cast<size_t>(ranks * ranks), 0)};
    };
    return plan::divide(input, {graph, divided->partition, traffic});
  }
  const auto all = [&](const std::string& source, const std::string& target) {
    return graph::EdgeTraffic{{num_edges(source, target)}, {0}};
  };
  const graph::GraphPartition one = graph::make_partition(
      graph.node_sets, 1, input.hidden_order, [](const graph::GraphPartition&) { return 0; });
  return plan::divide(input, {graph, one, all});
}

void divide_graph(GraphParts& parts, graph::GraphSlice slice, const RunConfig& config,
                  parallel::Communicator& sample) {
  parallel::CommunicatorPeers peers(sample, "dividing a graph");
  std::vector<graph::GraphReport::Part> times = std::move(parts.report.parts);
  parts.report = graph::report_of(slice, peers);
  parts.report.parts = std::move(times);
  DividedGraph& divided = parts.divided.emplace();
  divided.partition =
      graph::make_partition(slice, hidden_order(config), config.model.layers, peers);
  std::vector<std::pair<size_t, graph::EdgeSet>> whole;
  for (size_t i = 0; i < slice.ranges.size(); ++i) {
    if (is_for_matrix(slice.graph.edge_sets[i], config))
      whole.emplace_back(i, graph::whole_edges(slice, i, peers));
  }
  graph::GraphPart part =
      graph::take_part(std::move(slice), divided.partition, config.parallel.mapper_sources, peers);
  parts.graph = std::move(part.graph);
  for (auto& [place, edges] : whole)
    parts.graph.edge_sets[place] = std::move(edges);
  divided.own = std::move(part.own);
  for (const graph::OwnEdges& own : divided.own)
    divided.traffic.push_back(graph::traffic_of(own, peers));
}

namespace {

// Calls an action that may use groups on every rank. An Error that it throws on all of them becomes
// FailedTogether, as parallel::together() has it. Anything else, memory that one rank cannot have,
// leaves others waiting in a group: it is thrown on, and ends the program at once.
void in_step(parallel::Communicator& world, const std::function<void()>& action) {
  std::exception_ptr error;
  try {
    action();
  } catch (const Error&) {
    error = std::current_exception();
  }
  const auto tell = [&] {
    if (error) std::rethrow_exception(error);
  };
  parallel::together(world, tell, failure_handling());
}

// Throws DataError unless all ranks have made the same of what should be equal everywhere, whatever
// their processors: halves of two graphs would fit nowhere. Collective.
void check_same(const std::string& own, const std::string& what, parallel::Communicator& world) {
  std::string first = own;
  share(first, world);
  const bool differs = parallel::on_any_rank(world, own != first);
  const auto tell = [&] {
    if (differs)
      throw DataError(concat("ranks have built a graph with different ", what),
                      "do they run on different processors? Build it with aifs-train graph build, "
                      "and name the file in graph.file");
  };
  parallel::together(world, tell, failure_handling());
}

// Each rank reads its slice. Nothing where some rank does not find the file: the main rank has read
// all of the graph then.
std::optional<graph::GraphSlice> read_slice(GraphParts& parts, const parallel::ProcessMesh& mesh) {
  const bool is_seen = all_see(parts, mesh.world());
  std::optional<graph::GraphSlice> slice;
  const auto load = [&] {
    if (is_seen) {
      slice = graph::load_slice(parts.file, mesh.model().rank(), mesh.model().size());
    } else if (mesh.is_main()) {
      log::info("graph: not every rank finds '", parts.file, "': the main rank reads all of it");
      parts.graph = graph::load_graph(parts.file).graph;
      parts.report = graph::report_of(parts.graph);
      graph::measure_lengths(parts.graph, parts.report);
    }
  };
  parallel::together(mesh.world(), load, failure_handling());
  return slice;
}

// Each rank builds its slice; the ranks of the main rank's sample write the file, if there is one.
graph::GraphSlice build_slice(GraphParts& parts, const RunConfig& config,
                              const std::vector<DataParts>& datasets,
                              const parallel::ProcessMesh& mesh) {
  graph::GraphSlice slice;
  in_step(mesh.world(), [&] {
    parallel::CommunicatorPeers peers(mesh.model(), "building a graph");
    const DataCells cells(datasets);
    slice = graph::build_slice(config.graph, cells.named(), peers, &parts.report);
    for (const DataParts& data : datasets)
      check_same_grid(slice.graph.nodes(data.name), data.training->info());
  });
  graph::HashSink nodes;
  for (const graph::NodeSet& set : slice.graph.node_sets)
    nodes.nodes(set);
  check_same(nodes.finish(), "nodes", mesh.world());
  const bool writes = !parts.file.empty() && parallel::on_any_rank(mesh.model(), mesh.is_main());
  in_step(mesh.world(), [&] {
    parallel::CommunicatorPeers peers(mesh.model(), "hashing a graph");
    parts.hash = writes ? graph::save_slices(parts.file, slice, parts.options_hash, peers)
                        : graph::content_hash(slice, peers);
  });
  check_same(parts.hash, "edges", mesh.world());
  return slice;
}

}  // namespace

void share_graph(GraphParts& parts, const RunConfig& config, const std::vector<DataParts>& datasets,
                 const parallel::ProcessMesh& mesh) {
  parallel::Communicator& world = mesh.world();
  const auto start = std::chrono::steady_clock::now();
  std::string way(1, static_cast<char>(parts.way));
  for (std::string* text : {&way, &parts.file, &parts.options_hash, &parts.hash})
    share(*text, world);
  parts.way = static_cast<GraphWay>(way[0]);
  std::optional<graph::GraphSlice> slice;
  if (parts.way == GraphWay::kRead) slice = read_slice(parts, mesh);
  if (parts.way == GraphWay::kBuilt) slice = build_slice(parts, config, datasets, mesh);
  if (!slice) return share(parts.graph, world);
  divide_graph(parts, std::move(*slice), config, mesh.model());
  parts.seconds += seconds_since(start);
}

}  // namespace aifs::app
