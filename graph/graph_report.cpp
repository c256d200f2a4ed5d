// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_report.h"

#include <algorithm>
#include <cstdio>

#include "core/check.h"

namespace aifs::graph {

namespace {

std::vector<int64_t> degrees(const std::vector<int32_t>& index, int64_t num_nodes) {
  std::vector<int64_t> degree(static_cast<size_t>(num_nodes), 0);
  for (const int32_t node : index)
    ++degree[static_cast<size_t>(node)];
  return degree;
}

EdgeSetReport report_of(const EdgeSet& edges, int64_t num_sources, int64_t num_targets) {
  EdgeSetReport report;
  report.source = edges.source;
  report.target = edges.target;
  report.num_edges = edges.num_edges();
  const auto in = degrees(edges.target_index, num_targets);
  const auto out = degrees(edges.source_index, num_sources);
  report.unused_sources = std::count(out.begin(), out.end(), 0);
  report.targets_without_edges = std::count(in.begin(), in.end(), 0);
  if (in.empty()) return report;
  const auto [least, most] = std::minmax_element(in.begin(), in.end());
  report.in_degree_min = *least;
  report.in_degree_max = *most;
  report.in_degree_mean = static_cast<double>(report.num_edges) / static_cast<double>(in.size());
  return report;
}

std::string percent(int64_t part, int64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g",
                100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return concat(part, " of ", whole, " (", text, " %)");
}

}  // namespace

GraphReport report_of(const Graph& graph) {
  GraphReport report;
  for (const NodeSet& nodes : graph.node_sets)
    report.node_counts.emplace_back(nodes.name, nodes.num_nodes());
  for (const EdgeSet& edges : graph.edge_sets) {
    const int64_t num_sources = graph.nodes(edges.source).num_nodes();
    const int64_t num_targets = graph.nodes(edges.target).num_nodes();
    const EdgeSetReport& set =
        report.edge_sets.emplace_back(report_of(edges, num_sources, num_targets));
    if (set.source == "data" && set.unused_sources > 0) {
      report.warnings.push_back(concat(percent(set.unused_sources, num_sources),
                                       " data nodes have no edge to '", set.target,
                                       "': their values are not seen; a larger cut-off, more "
                                       "neighbours or a finer mesh reaches them"));
    }
    if (set.target == "data" && set.targets_without_edges > 0) {
      report.warnings.push_back(concat(percent(set.targets_without_edges, num_targets),
                                       " data nodes have no edge from '", set.source,
                                       "': they get no forecast; a larger cut-off or the kind "
                                       "\"knn\" reaches them"));
    }
  }
  return report;
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
