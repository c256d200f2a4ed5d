// SPDX-License-Identifier: Apache-2.0
// What a graph looks like in numbers, and what is odd about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "graph/statistics.h"
#include "graph/unconnected.h"

namespace aifs::graph {

struct EdgeSetReport {
  std::string source, target;
  int64_t num_edges = 0;
  int64_t in_degree_min = 0, in_degree_max = 0;  // edges that end at a target node
  double in_degree_mean = 0.0;
  int64_t unused_sources = 0;         // nodes where no edge starts
  int64_t targets_without_edges = 0;  // nodes where no edge ends
  Spread length_km = {};              // zeros before measure_lengths()
};

struct GraphReport {
  struct Part {
    std::string name;
    double seconds;
  };
  std::vector<std::pair<std::string, int64_t>> node_counts;
  std::vector<EdgeSetReport> edge_sets;
  std::vector<std::string> warnings;          // data nodes that are not seen, or get no forecast
  std::vector<std::string> notes;             // mesh nodes that hear no data
  std::vector<UnconnectedNodes> unconnected;  // which both are about
  std::vector<Part> parts;                    // where the time went; empty for a loaded graph
  std::string content_hash;  // of the graph, where loading or storing told; else empty

  // A small table for people.
  std::string text() const;
  // Edges of a target and lengths of all edge sets, least / mean / most, in one line.
  std::string edges_text() const;
};

GraphReport report_of(const Graph& graph);
// Of a graph of which only the degrees are known.
GraphReport report_of(const GraphStatistics& statistics);

// Adds lengths to the report of the graph: a pass over all edges.
void measure_lengths(const Graph& graph, GraphReport& report);

}  // namespace aifs::graph
