// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/check.h"
#include "graph/builder.h"
#include "tests/graph/kind_samples.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::graph;
using namespace aifs::graph::samples;

namespace {

// O8 to a mesh of O16, which leaves some of it without edges, changed by `post`.
Graph changed(const std::string& post) {
  return build_graph(section<GraphOptions>(concat(R"({
    "grid": "o8",
    "nodes": {"hidden": {"kind": "gaussian", "grid": "o16"}},
    "edges": [
      {"source": "data", "target": "hidden", "kinds": [{"kind": "cutoff"}]},
      {"source": "hidden", "target": "hidden", "kinds": [{"kind": "knn", "num_neighbours": 4}]},
      {"source": "hidden", "target": "data", "kinds": [{"kind": "knn"}]}],
    "post_process": [)",
                                                  post, "]}"),
                                           "graph"),
                     {});
}

}  // namespace

TEST_CASE("changes of a graph are made by their JSON", "[post_kinds]") {
  const Graph plain = changed("");
  const int64_t edges = plain.edges("hidden", "hidden").num_edges();
  SECTION("self edges go, and the norm follows") {
    const Graph graph = changed(R"({"kind": "remove_self_edges"})");
    const EdgeSet& left = graph.edges("hidden", "hidden");
    REQUIRE(left.num_edges() == edges - 1600);  // every node was its own nearest
    double squares = 0.0, mean = 0.0;
    const auto& lengths = left.attributes.at("edge_length").values;
    for (const float length : lengths)
      mean += length / static_cast<double>(lengths.size());
    for (const float length : lengths)
      squares += (length - mean) * (length - mean) / static_cast<double>(lengths.size() - 1);
    REQUIRE(std::sqrt(squares) == Approx(1.0).epsilon(1e-5));
  }
  SECTION("long edges go") {
    const Graph graph = changed(R"({"kind": "restrict_length", "source": "hidden", "target": "data",
                    "max_length_km": 400})");
    const EdgeSet& left = graph.edges("hidden", "data");
    REQUIRE(left.num_edges() < plain.edges("hidden", "data").num_edges());
    const NodeSet &hidden = graph.nodes("hidden"), &data = graph.nodes("data");
    for (size_t e = 0; e < left.source_index.size(); ++e) {
      const auto s = static_cast<size_t>(left.source_index[e]);
      const auto t = static_cast<size_t>(left.target_index[e]);
      REQUIRE(kEarthRadius_km * great_circle_angle(hidden.lat_rad[s], hidden.lon_rad[s],
                                                   data.lat_rad[t], data.lon_rad[t]) <=
              400.0);
    }
  }
  SECTION("an area is cut out of the mesh") {
    const Graph graph = changed(
        R"({"kind": "area", "nodes": "hidden", "north": 90, "south": -1, "west": 0, "east": 360})");
    REQUIRE(graph.nodes("hidden").num_nodes() == 800);
    graph.check();
  }
  SECTION("edges are sorted") {
    const Graph graph = changed(R"({"kind": "sort_edges", "by": "source", "descending": false})");
    const auto& sources = graph.edges("hidden", "data").source_index;
    REQUIRE(std::is_sorted(sources.begin(), sources.end()));
  }
}

TEST_CASE("nodes without edges go, and their former numbers are kept", "[post_kinds]") {
  const std::string graph = R"({
    "grid": "o8", "nodes": {"hidden": {"kind": "gaussian", "grid": "o32"}},
    "edges": [{"source": "data", "target": "hidden", "kinds": [{"kind": "reversed_knn"}]},
              {"source": "hidden", "target": "data", "kinds": [{"kind": "knn"}]}],
    "post_process": [{"kind": "remove_unconnected", "save_as": "number"}]})";
  const Graph left = build_graph(section<GraphOptions>(graph, "graph"), {});
  const NodeSet& hidden = left.nodes("hidden");
  REQUIRE(hidden.num_nodes() < 5248);
  REQUIRE(hidden.num_nodes() >= 544);
  const MeshNodes whole = nodes_of(R"({"kind": "gaussian", "grid": "o32"})");
  const auto& numbers = hidden.attributes.at("number").values;
  for (size_t i = 0; i < numbers.size(); ++i)
    REQUIRE(hidden.lat_rad[i] == whole.set.lat_rad[static_cast<size_t>(numbers[i])]);
}

TEST_CASE("changes that cannot be are named", "[post_kinds]") {
  REQUIRE_THROWS_WITH(changed(R"({"kind": "remove_self_edges", "nodes": "data"})"),
                      ContainsSubstring("'graph.post_process.0': the graph has no edges"));
  REQUIRE_THROWS_WITH(changed(R"({"kind": "remove_unconnected", "nodes": ["mesh"]})"),
                      ContainsSubstring("'graph.post_process.0'"));
  REQUIRE_THROWS_WITH(changed(R"({"kind": "area", "nodes": ["data"], "north": 90, "south": 0})"),
                      ContainsSubstring("removes 272 cells of the dataset 'data'"));
  REQUIRE_THROWS_WITH(changed(R"({"kind": "area", "north": 1, "south": 2})"),
                      ContainsSubstring("south of the southern"));
  REQUIRE_THROWS_WITH(changed(R"({"kind": "restrict_length", "max_length_km": 0.001})"),
                      ContainsSubstring("no edge would be left"));
}

TEST_CASE("attributes that are dropped serve changes and do not come back", "[post_kinds]") {
  const Graph graph = build_graph(section<GraphOptions>(R"({
    "grid": "o8",
    "nodes": {"hidden": {"kind": "gaussian", "grid": "o8",
                         "attributes": {"_w": {"kind": "uniform"}}}},
    "edges": [
      {"source": "data", "target": "hidden", "kinds": [{"kind": "knn"}]},
      {"source": "hidden", "target": "hidden", "kinds": [{"kind": "knn", "num_neighbours": 2}],
       "attributes": {"_secret": {"kind": "length"},
                      "w": {"kind": "of_source", "node_attribute": "_w"}}}],
    "post_process": [{"kind": "remove_self_edges"}]})",
                                                        "graph"),
                                  {});
  const EdgeSet& edges = graph.edges("hidden", "hidden");
  REQUIRE(edges.num_edges() == 544);
  REQUIRE(edges.attributes.size() == 1);
  REQUIRE(edges.attributes.at("w").values.size() == 544);
  REQUIRE(graph.nodes("hidden").attributes.empty());
}

TEST_CASE("an edge set of self edges only cannot lose them", "[post_kinds]") {
  const auto options = section<GraphOptions>(R"({
    "grid": "o8", "hidden": {"kind": "gaussian", "grid": "o8"},
    "processor": {"kind": "knn", "num_neighbours": 1},
    "edge_length_norm": "none", "edge_dirs_norm": "none",
    "post_process": [{"kind": "remove_self_edges"}]})",
                                             "graph");
  REQUIRE_THROWS_WITH(build_graph(options, {}),
                      ContainsSubstring("'graph.post_process.0': no edge of 'hidden'"));
}
