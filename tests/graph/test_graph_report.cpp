// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_report.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace aifs::graph;

namespace {

Graph graph_with_orphans() {
  Graph graph;
  graph.node_sets = {{"data", std::vector<float>(4, 0.0F), std::vector<float>(4, 0.0F), {}},
                     {"hidden", std::vector<float>(2, 0.0F), std::vector<float>(2, 0.0F), {}}};
  graph.edge_sets = {{"data", "hidden", {0, 1, 1}, {0, 0, 0}, {}},
                     {"hidden", "data", {0, 0, 1}, {0, 1, 2}, {}}};
  return graph;
}

}  // namespace

TEST_CASE("degrees and unused nodes are counted", "[graph_report]") {
  const GraphReport report = report_of(graph_with_orphans());
  REQUIRE(report.node_counts[0] == std::pair<std::string, int64_t>{"data", 4});
  const EdgeSetReport& encoder = report.edge_sets[0];
  REQUIRE(encoder.num_edges == 3);
  REQUIRE(encoder.in_degree_min == 0);
  REQUIRE(encoder.in_degree_mean == 1.5);
  REQUIRE(encoder.in_degree_max == 3);
  REQUIRE(encoder.unused_sources == 2);
  REQUIRE(encoder.targets_without_edges == 1);
}

TEST_CASE("data nodes without edges are warned of", "[graph_report]") {
  const GraphReport report = report_of(graph_with_orphans());
  REQUIRE(report.warnings.size() == 2);
  REQUIRE_THAT(report.warnings[0], ContainsSubstring("2 of 4 (50 %) data nodes have no edge to"));
  REQUIRE_THAT(report.warnings[1], ContainsSubstring("they get no forecast"));
}

TEST_CASE("the table has a line per set and part", "[graph_report]") {
  GraphReport report = report_of(graph_with_orphans());
  report.parts.push_back({"nodes", 1.5});
  const std::string text = report.text();
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 5);
  REQUIRE_THAT(text, ContainsSubstring("data->hidden"));
  REQUIRE_THAT(text, ContainsSubstring("1.50 s"));
}

TEST_CASE("a set without nodes has no degrees", "[graph_report]") {
  Graph graph;
  graph.node_sets = {{"a", {}, {}, {}}};
  graph.edge_sets = {{"a", "a", {}, {}, {}}};
  REQUIRE(report_of(graph).edge_sets[0].in_degree_max == 0);
}

TEST_CASE("mesh nodes that hear no data are noted, not warned of", "[graph_report]") {
  const GraphReport report = report_of(graph_with_orphans());
  REQUIRE(report.notes ==
          std::vector<std::string>{"1 of 2 (50 %) hidden nodes have no edge from 'data'"});
}

TEST_CASE("every dataset is data, whatever its name", "[graph_report]") {
  Graph graph = graph_with_orphans();
  graph.node_sets[0].name = graph.edge_sets[0].source = graph.edge_sets[1].target = "era5";
  REQUIRE(report_of(graph).warnings.empty());
  graph.node_sets[0].attributes["area_weight"] = {1, {1, 1, 1, 1}};
  REQUIRE(report_of(graph).warnings.size() == 2);
}

TEST_CASE("a line tells degrees and lengths of all edge sets", "[graph_report]") {
  Graph graph = graph_with_orphans();
  graph.node_sets[0].lat_rad = {0.0F, 0.4F, 0.4F, 0.4F};
  GraphReport report = report_of(graph);
  measure_lengths(graph, report);
  REQUIRE(report.edge_sets[0].length_km.min == 0.0);
  REQUIRE(report.edge_sets[0].length_km.max == Approx(0.4 * 6371).epsilon(1e-6));
  REQUIRE(report.edges_text() ==
          "data->hidden 0 / 1.5 / 3 a target, 0 / 1699 / 2548 km; "
          "hidden->data 0 / 0.75 / 1 a target, 0 / 1699 / 2548 km");
}
