// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/file_io.h"
#include "graph/edges/neighbour_kinds.h"
#include "graph/graph_file.h"
#include "graph/nodes/gaussian_grid.h"
#include "graph/nodes/tri_kinds.h"
#include "graph/nodes/tri_nodes.h"
#include "tests/graph/graph_options.h"
#include "tests/graph/graph_samples.h"
#include "tests/support/catch.h"
#include "tests/support/thread_peers.h"

using namespace aifs;
using namespace aifs::graph;
using samples::options_of;
using samples::parsed;

namespace {

// Weights that need no mask.
std::vector<std::string> weight_names() {
  return {"spherical", "uniform", "cosine_latitude", "isolatitude", "planar"};
}

std::set<std::pair<int32_t, int32_t>> as_set(const std::vector<int32_t>& source,
                                             const std::vector<int32_t>& target) {
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (size_t e = 0; e < source.size(); ++e)
    pairs.emplace(source[e], target[e]);
  return pairs;
}

// Our number of each stored node.
std::map<int32_t, int32_t> numbers(const NodeSet& stored, const NodeSet& ours) {
  std::map<std::pair<float, float>, int32_t> at;
  for (size_t i = 0; i < ours.lat_rad.size(); ++i)
    at[{ours.lat_rad[i], ours.lon_rad[i]}] = static_cast<int32_t>(i);
  std::map<int32_t, int32_t> result;
  for (size_t i = 0; i < stored.lat_rad.size(); ++i)
    result[static_cast<int32_t>(i)] = at.at({stored.lat_rad[i], stored.lon_rad[i]});
  return result;
}

}  // namespace

TEST_CASE("the default graph of O8 and refinement 2 is the reference's", "[builder]") {
  const auto tensors = samples::reference_tensors("graph_o8_tri2.safetensors");
  const auto json = samples::reference_json("graph_o8_tri2.json");
  GraphOptions options = options_of("dataset", 2);
  options.coordinates = DegreeArithmetic::kFloat32;
  const Graph graph = build_graph(
      options, {tensors.doubles("input/latitude_deg"), tensors.doubles("input/longitude_deg")});
  const NodeSet& data = graph.nodes("data");
  const NodeSet stored_data = samples::reference_nodes(tensors, "data");
  REQUIRE(data.lat_rad == stored_data.lat_rad);
  REQUIRE(data.lon_rad == stored_data.lon_rad);
  const auto weights = tensors.doubles("nodes/data/area_weight");
  for (size_t i = 0; i < weights.size(); ++i) {
    REQUIRE(static_cast<double>(data.attributes.at("area_weight").values[i]) ==
            Approx(weights[i]).epsilon(1e-6));
  }
  const auto hidden = numbers(samples::reference_nodes(tensors, "hidden"), graph.nodes("hidden"));
  const auto ambiguous =
      json["own_diagnostics_not_from_anemoi"]["hidden_to_data"]["ambiguous_targets"]
          .get<std::set<int32_t>>();
  for (const EdgeSet& edges : graph.edge_sets) {
    EdgeList stored = samples::reference_edges(tensors, edges.source + "_to_" + edges.target);
    if (edges.source == "hidden") {
      for (int32_t& node : stored.source_index)
        node = hidden.at(node);
    }
    if (edges.target == "hidden") {
      for (int32_t& node : stored.target_index)
        node = hidden.at(node);
    }
    REQUIRE(edges.num_edges() == stored.num_edges());
    auto ours = as_set(edges.source_index, edges.target_index);
    auto theirs = as_set(stored.source_index, stored.target_index);
    if (edges.target == "data") {
      const auto undecided = [&](const auto& edge) { return ambiguous.count(edge.second) > 0; };
      std::erase_if(ours, undecided);
      std::erase_if(theirs, undecided);
    }
    REQUIRE(ours == theirs);
  }
}

TEST_CASE("a build report counts nodes, edges and seconds", "[builder]") {
  GraphReport report;
  const Graph graph = build_graph(options_of("o32", 3), {}, &report);
  graph.check();
  REQUIRE(report.node_counts[0].second == 5248);
  REQUIRE(report.node_counts[1].second == 642);
  REQUIRE(report.edge_sets[0].num_edges == 7568);
  REQUIRE(report.edge_sets[1].num_edges == 5040);
  REQUIRE(report.edge_sets[2].num_edges == 15744);
  REQUIRE(report.warnings.empty());
  REQUIRE(report.parts.size() == 6);
  build_graph(options_of("o8", 2), {}, &report);
  REQUIRE(report.edge_sets[0].unused_sources == 4);
  REQUIRE(report.warnings.size() == 1);
}

TEST_CASE("the graph does not depend on the number of threads", "[builder]") {
  GraphOptions options = options_of("o32", 3);
  options.threads = 1;
  const std::string one = build_graph(options, {}).content_hash();
  options.threads = 3;
  REQUIRE(build_graph(options, {}).content_hash() == one);
}

TEST_CASE("options choose edges, norms and weights", "[builder]") {
  GraphOptions options = parsed(R"({
    "grid": "o16", "hidden": {"refinement": 2},
    "encoder": {"kind": "knn", "num_neighbours": 12},
    "processor": {"levels": [0, 2], "x_hops": 2},
    "decoder": {"kind": "cutoff", "cutoff_factor": 3, "max_neighbours": 4},
    "edge_length_norm": "unit-max", "edge_dirs_norm": "none",
    "area_weight": {"kind": "uniform", "norm": "l1"}})");
  const Graph graph = build_graph(options, {});
  REQUIRE(graph.edges("data", "hidden").num_edges() == 12 * 162);
  REQUIRE(graph.edges("hidden", "hidden").num_edges() == 2940);
  const GraphReport report = report_of(graph);
  REQUIRE(report.edge_sets[2].in_degree_max == 4);
  const auto& length = graph.edges("data", "hidden").attributes.at("edge_length").values;
  REQUIRE(*std::max_element(length.begin(), length.end()) == 1.0F);
  const auto& dirs = graph.edges("data", "hidden").attributes.at("edge_dirs").values;
  REQUIRE(std::hypot(dirs[0], dirs[1]) == Approx(1.0).epsilon(1e-6));
  REQUIRE(graph.nodes("data").attributes.at("area_weight").values[7] == Approx(1.0 / 1600));
}

TEST_CASE("every kind of area weight builds", "[builder]") {
  for (const std::string& kind : weight_names()) {
    const Graph graph = build_graph(
        parsed(concat(R"({"grid": "o8", "hidden": {"refinement": 1}, "area_weight": {"kind": ")",
                      kind, R"("}})")),
        {});
    const auto& weights = graph.nodes("data").attributes.at("area_weight").values;
    REQUIRE(*std::max_element(weights.begin(), weights.end()) == 1.0F);
  }
}

TEST_CASE("graphs that make no sense name the option", "[builder]") {
  REQUIRE_THROWS_WITH(build_graph(options_of("o8", 5), {}),
                      ContainsSubstring("'graph.hidden.refinement': refinement 5 has 10242"));
  REQUIRE_THROWS_WITH(build_graph(options_of("dataset", 1), {}),
                      ContainsSubstring("the dataset has no coordinates"));
  REQUIRE_THROWS_WITH(build_graph(options_of("o8", 1), {{1.0}, {2.0}}),
                      ContainsSubstring("grid o8 has 544 points, the dataset has 1"));
  GraphOptions options = options_of("o8", 0);
  KnnKind thirteen;
  thirteen.num_neighbours = 13;
  options.decoder.kind.set(thirteen);
  REQUIRE_THROWS_WITH(build_graph(options, {}),
                      ContainsSubstring("'graph.decoder.num_neighbours': 13 neighbours of 12"));
  options = options_of("o8", 1);
  CutOffKind narrow;
  narrow.cutoff_factor = 1e-6;
  options.encoder.kind.set(narrow);
  REQUIRE_THROWS_WITH(build_graph(options, {}), ContainsSubstring("no edge was found"));
}

TEST_CASE("weights that work are named where data nodes share a place, and they do work",
          "[builder]") {
  Coordinates poles;  // four rows of ten, the first and the last at the poles
  for (const double lat : {90.0, 30.0, -30.0, -90.0}) {
    for (int column = 0; column < 10; ++column) {
      poles.lat_deg.push_back(lat);
      poles.lon_deg.push_back(36.0 * column);
    }
  }
  GraphOptions options = options_of("dataset", 0);
  try {
    build_graph(options, poles);
    FAIL("no error");
  } catch (const DataError& error) {
    for (const std::string& kind : weight_names()) {
      if (error.hint().find('"' + kind + '"') == std::string::npos) continue;
      const GraphOptions named = parsed(
          concat(R"({"hidden": {"refinement": 0}, "area_weight": {"kind": ")", kind, R"("}})"));
      const Graph graph = build_graph(named, poles);
      for (const float weight : graph.nodes("data").attributes.at("area_weight").values)
        REQUIRE(weight > 0.0F);
    }
    REQUIRE_THAT(error.hint(), ContainsSubstring("\"cosine_latitude\""));
  }
}

TEST_CASE("a norm that does not exist for the values is named", "[builder]") {
  const TriNodes mesh = tri_nodes(0);
  Coordinates cells;  // the hidden nodes themselves: the decoder's edges have no length
  for (size_t i = 0; i < mesh.lat_rad.size(); ++i) {
    cells.lat_deg.push_back(mesh.lat_rad[i] * 180 / kPi);
    cells.lon_deg.push_back(mesh.lon_rad[i] * 180 / kPi);
  }
  const GraphOptions options = parsed(
      R"({"hidden": {"refinement": 0}, "encoder": {"kind": "knn", "num_neighbours": 2},
          "decoder": {"num_neighbours": 1}, "edge_length_norm": "unit-max"})");
  REQUIRE_THROWS_WITH(build_graph(options, cells), ContainsSubstring("'graph.edge_length_norm'"));
}

TEST_CASE("the outline of a graph has its names and numbers, and refuses what building refuses",
          "[builder]") {
  const GraphOptions options = options_of("o8", 2);
  const Graph outline = graph_outline(options, {}), graph = build_graph(options, {});
  for (const NodeSet& nodes : graph.node_sets) {
    const NodeSet& same = outline.nodes(nodes.name);
    REQUIRE(same.num_nodes() == nodes.num_nodes());
    for (const auto& [name, values] : nodes.attributes)
      REQUIRE(same.attributes.count(name) == 1);
  }
  REQUIRE(outline.nodes("data").lat_rad == graph.nodes("data").lat_rad);
  for (const EdgeSet& edges : graph.edge_sets) {
    for (const auto& [name, values] : edges.attributes)
      REQUIRE(outline.edges(edges.source, edges.target).attributes.at(name).width == values.width);
  }
  REQUIRE_THROWS_WITH(graph_outline(options_of("o8", 5), {}),
                      ContainsSubstring("'graph.hidden.refinement'"));
  REQUIRE_THROWS_WITH(graph_outline(options_of("dataset", 1), {}),
                      ContainsSubstring("the dataset has no coordinates"));
  Coordinates doubled = gaussian_coordinates(parse_gaussian_grid("o8"));
  doubled.lat_deg[3] = doubled.lat_deg[4];
  doubled.lon_deg[3] = doubled.lon_deg[4];
  GraphOptions from_dataset = options_of("dataset", 1);
  REQUIRE_THROWS_WITH(graph_outline(from_dataset, doubled),
                      ContainsSubstring("nodes 3 and 4 are at the same place"));
  from_dataset.area_weight.kind.choose("uniform");
  REQUIRE_NOTHROW(graph_outline(from_dataset, doubled));
}

namespace {

// Recipes whose ranks build slices: searches from either side, of masked nodes and with ties, lists
// that are made whole and cut, several builders, norms of each kind, attributes of ends.
std::vector<std::string> sliced_recipes() {
  const std::string attributes = R"("attributes": {
      "length": {"kind": "length", "norm": "unit-std"}, "dirs": {"kind": "direction", "norm": "l2"},
      "azimuth": {"kind": "azimuth", "norm": "l1"}, "harmonics": {"kind": "directional_harmonics"},
      "log": {"kind": "length", "norm": "log1p"}, "range": {"kind": "length", "norm": "unit-range"},
      "area": {"kind": "of_source", "node_attribute": "w"}})";
  const std::string nodes = R"({"nodes": {
      "data": {"kind": "gaussian", "grid": "o24", "attributes": {
          "w": {"kind": "spherical", "norm": "unit-max"}}},
      "hidden": {"kind": "healpix", "resolution": 3, "attributes": {"w": {"kind": "uniform"}}}},
      "edges": [)";
  const auto edges = [&](const std::string& from, const std::string& to, const std::string& kinds) {
    return concat(R"({"source": ")", from, R"(", "target": ")", to, R"(", "kinds": [)", kinds,
                  "], ", attributes, "}");
  };
  return {
      R"({"grid": "o24", "hidden": {"kind": "tri", "refinement": 3}})",
      R"({"grid": "f12", "hidden": {"kind": "gaussian", "grid": "o12", "refinement": null},
          "encoder": {"kind": "reversed_knn", "num_neighbours": 2},
          "processor": {"kind": "knn", "num_neighbours": 8},
          "decoder": {"kind": "reversed_cutoff", "cutoff_factor": 1.2}})",
      nodes + edges("data", "hidden", R"({"kind": "cutoff", "cutoff_distance_km": 900,
                                          "max_neighbours": 7})") +
          "," + edges("hidden", "hidden", R"({"kind": "mutual_knn", "num_neighbours": 5})") + "," +
          edges("hidden", "data", R"({"kind": "knn"}, {"kind": "cutoff", "cutoff_factor": 1.1})") +
          "]}"};
}

}  // namespace

TEST_CASE("the slices that ranks build are the graph, bit for bit", "[builder]") {
  for (const std::string& recipe : sliced_recipes()) {
    const GraphOptions options = parsed(recipe);
    const Coordinates none;
    const std::vector<NamedCells> datasets{{"data", none}};
    REQUIRE(builds_slices(options, datasets));
    const Graph whole = build_joint_graph(options, datasets);
    for (const int64_t ranks : {1, 2, 3, 8}) {
      INFO(recipe << "\n" << ranks << " ranks");
      test::run_peers(ranks, [&](Peers& peers) {
        GraphReport report;
        const GraphSlice slice = build_slice(options, datasets, peers, &report);
        const GraphSlice wanted = slice_of(whole, peers.rank(), ranks);
        AIFS_CHECK(!report.parts.empty(), "no times");
        for (size_t i = 0; i < wanted.ranges.size(); ++i)
          AIFS_CHECK(slice.ranges[i].begin == wanted.ranges[i].begin &&
                         slice.ranges[i].end == wanted.ranges[i].end &&
                         slice.ranges[i].total == wanted.ranges[i].total,
                     "another range");
        AIFS_CHECK(slice.graph.content_hash() == wanted.graph.content_hash(), "another slice");
        AIFS_CHECK(content_hash(slice, peers) == whole.content_hash(), "another graph");
      });
    }
  }
}

TEST_CASE("what only the whole graph shows keeps ranks from building slices", "[builder]") {
  const Coordinates none;
  const std::vector<NamedCells> datasets{{"data", none}};
  const auto reason = [&](const std::string& more) {
    std::string why;
    REQUIRE_FALSE(builds_slices(parsed(R"({"grid": "o8", )" + more + "}"), datasets, &why));
    return why;
  };
  CHECK_THAT(reason(R"("hidden": {"refinement": 1},
                       "post_process": [{"kind": "remove_self_edges"}])"),
             ContainsSubstring("graph.post_process"));
  CHECK_THAT(reason(R"("hidden": {"kind": "text", "file": "nodes.txt", "refinement": null},
                       "processor": {"kind": "none"})"),
             ContainsSubstring("'hidden' are read from a file"));
  CHECK_THAT(reason(R"("hidden": {"refinement": 1},
                       "area_weight": {"kind": "variable", "variable": "lsm"})"),
             ContainsSubstring("graph.area_weight is made of a field"));
  const std::string basis = R"({"nodes": {"data": {"kind": "gaussian", "grid": "o8"},
      "hidden": {"kind": "tri", "refinement": 1}}, "edges": [{"source": "data", "target": "hidden",
      "kinds": [{"kind": "knn"}], "attributes": {"basis": {"kind": "radial_basis"}}}]})";
  std::string why;
  REQUIRE_FALSE(builds_slices(parsed(basis), datasets, &why));
  CHECK_THAT(why, ContainsSubstring("graph.edges.0.attributes.basis"));
}

TEST_CASE("what is wrong with a graph is told on every rank that builds it", "[builder]") {
  const Coordinates none;
  const std::vector<NamedCells> datasets{{"data", none}};
  for (const std::string encoder : {R"({"kind": "knn", "num_neighbours": 100000})",
                                    R"({"kind": "cutoff", "cutoff_distance_km": 0.001})"}) {
    const GraphOptions options =
        parsed(R"({"grid": "o8", "hidden": {"refinement": 1}, "encoder": )" + encoder + "}");
    test::run_peers(3, [&](Peers& peers) {
      bool refused = false;
      try {
        build_slice(options, datasets, peers);
      } catch (const ConfigError& error) {
        refused = std::string(error.path()).starts_with("graph.encoder");
      }
      AIFS_CHECK(refused, "rank ", peers.rank(), " goes on");
    });
  }
}
