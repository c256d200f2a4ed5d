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
