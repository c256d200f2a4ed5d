// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_report.h"

#include <cstdio>

#include "core/check.h"
#include "core/join.h"

namespace aifs::graph {

namespace {

EdgeSetReport report_of(const EdgeSetStatistics& edges) {
  const auto unused = static_cast<int64_t>(edges.sources.without.size());
  const auto empty = static_cast<int64_t>(edges.targets.without.size());
  return {.source = edges.source,
          .target = edges.target,
          .num_edges = edges.num_edges,
          .in_degree_min = static_cast<int64_t>(edges.targets.spread.min),
          .in_degree_max = static_cast<int64_t>(edges.targets.spread.max),
          .in_degree_mean = edges.targets.spread.mean,
          .unused_sources = unused,
          .targets_without_edges = empty};
}

std::string consequence_of(const UnconnectedNodes& nodes) {
  return nodes.are_sources ? ": their values are not seen; a larger cut-off, more neighbours or a "
                             "finer mesh reaches them"
                           : ": they get no forecast; a larger cut-off or the kind \"knn\" reaches "
                             "them";
}

std::string spread_text(const Spread& spread, int digits) {
  char text[96];
  std::snprintf(text, sizeof text, "%.*g / %.*g / %.*g", digits, spread.min, digits, spread.mean,
                digits, spread.max);
  return text;
}

}  // namespace

GraphReport report_of(const Graph& graph) {
  return report_of(degrees_of(graph));
}

GraphReport report_of(const GraphStatistics& statistics) {
  GraphReport report;
  for (const NodeSetStatistics& nodes : statistics.node_sets)
    report.node_counts.emplace_back(nodes.name, nodes.num_nodes);
  for (const EdgeSetStatistics& edges : statistics.edge_sets)
    report.edge_sets.push_back(report_of(edges));
  report.unconnected = unconnected_nodes(statistics);
  for (const UnconnectedNodes& nodes : report.unconnected) {
    if (nodes.is_data) {
      report.warnings.push_back(
          concat(nodes.text(), consequence_of(nodes),
                 " (aifs-train graph info --config names the cause and the setting)"));
    } else {
      report.notes.push_back(nodes.text());
    }
  }
  return report;
}

void measure_lengths(const Graph& graph, GraphReport& report) {
  for (EdgeSetReport& set : report.edge_sets) {
    const EdgeSet& edges = graph.edges(set.source, set.target);
    set.length_km = edge_length_spread_km(edges, graph.nodes(set.source), graph.nodes(set.target),
                                          /*threads=*/0);
  }
}

std::string GraphReport::edges_text() const {
  std::vector<std::string> sets;
  for (const EdgeSetReport& set : edge_sets) {
    const Spread degrees{static_cast<double>(set.in_degree_min), set.in_degree_mean,
                         static_cast<double>(set.in_degree_max)};
    sets.push_back(concat(set.source, "->", set.target, " ", spread_text(degrees, 3), " a target, ",
                          spread_text(set.length_km, 4), " km"));
  }
  return join(sets, "; ");
}

std::string GraphReport::text() const {
  std::string text;
  char line[160];
  for (const auto& [name, count] : node_counts) {
    std::snprintf(line, sizeof line, "nodes %-20s %12lld\n", name.c_str(),
                  static_cast<long long>(count));
    text += line;
  }
  for (const EdgeSetReport& set : edge_sets) {
    std::snprintf(line, sizeof line, "edges %-20s %12lld  per target %lld / %.1f / %lld\n",
                  (set.source + "->" + set.target).c_str(), static_cast<long long>(set.num_edges),
                  static_cast<long long>(set.in_degree_min), set.in_degree_mean,
                  static_cast<long long>(set.in_degree_max));
    text += line;
  }
  for (const Part& part : parts) {
    std::snprintf(line, sizeof line, "time  %-20s %10.2f s\n", part.name.c_str(), part.seconds);
    text += line;
  }
  return text;
}

}  // namespace aifs::graph
