// SPDX-License-Identifier: Apache-2.0
// Changes to a finished graph: leaving out nodes and edges, sorting. Attributes are carried along
// as they are; whoever wants the statistics of norms to follow computes them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/graph.h"

namespace aifs::graph {

// Keeps the nodes with keep[n] != 0 and the edges between kept nodes, renumbered. Returns the
// former numbers of the kept nodes. Throws Error if there are no such nodes.
std::vector<int32_t> keep_nodes(Graph& graph, const std::string& nodes,
                                const std::vector<uint8_t>& keep);

// 1 for nodes at which some edge starts or ends.
std::vector<uint8_t> connected_nodes(const Graph& graph, const std::string& nodes);

// An area in degrees, limits included; it may cross the date line (west > east).
struct Area {
  double north, west, south, east;
};
std::vector<uint8_t> nodes_in_area(const NodeSet& nodes, const Area& area);

// Keeps the edges with keep[e] != 0.
void keep_edges(EdgeSet& edges, const std::vector<uint8_t>& keep);

// 1 for edges of at most this length (great circle on the Earth).
std::vector<uint8_t> edges_up_to(const Graph& graph, const EdgeSet& edges, double length_km);

enum class EdgeEnd { kSource, kTarget };

// Stable sort by the node at one end.
void sort_edges(EdgeSet& edges, EdgeEnd end, bool descending);

}  // namespace aifs::graph
