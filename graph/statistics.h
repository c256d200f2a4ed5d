// SPDX-License-Identifier: Apache-2.0
// Counts of a graph: nodes and edges, degrees, lengths, attributes, and nodes without edges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/graph.h"

namespace aifs::graph {

// Of some values; zeros if there are none.
struct Spread {
  double min = 0.0, mean = 0.0, max = 0.0;
};

// Counts of values in ranges [first + i width, first + (i + 1) width); the last one has its end.
struct Histogram {
  double first = 0.0, width = 1.0;
  std::vector<int64_t> counts;
};

// Edges of a node at one end of an edge set. The histogram has a range for every degree if there
// are few.
struct DegreeStatistics {
  Spread spread;
  Histogram histogram;
  std::vector<int32_t> without;  // nodes without an edge, ascending
};

// All values of an attribute, whatever its width; spread of the finite ones.
struct AttributeStatistics {
  std::string name;
  int64_t num_rows = 0, width = 1;
  Spread spread = {};
  int64_t num_nonfinite = 0;
};

struct NodeSetStatistics {
  std::string name;
  int64_t num_nodes = 0;
  bool is_data = false;
  std::vector<AttributeStatistics> attributes;
};

struct EdgeSetStatistics {
  std::string source, target;
  int64_t num_edges = 0;
  DegreeStatistics sources, targets;
  Spread length_km;  // along great circles
  Histogram lengths_km;
  std::vector<AttributeStatistics> attributes;
};

struct GraphStatistics {
  std::vector<NodeSetStatistics> node_sets;
  std::vector<EdgeSetStatistics> edge_sets;
};

// True for a set of cells of a dataset, as opposed to a mesh: it is called "data" or has areas
// (attribute "area_weight"), which the builder gives to all of them.
bool is_data(const NodeSet& nodes);

// `index` holds nodes, each less than `num_nodes`.
DegreeStatistics degree_statistics(const std::vector<int32_t>& index, int64_t num_nodes);
// In two steps: edges of each node, and what is to be said of them.
std::vector<int32_t> degrees_of_nodes(const std::vector<int32_t>& index, int64_t num_nodes);
DegreeStatistics degree_statistics(const std::vector<int32_t>& degrees);
// Lengths (M) of edges between two sets in km on a sphere of kEarthRadius_km.
std::vector<float> edge_lengths_km(const EdgeSet& edges, const NodeSet& source,
                                   const NodeSet& target, int64_t threads);
// The spread of them, which takes no memory for each.
Spread edge_length_spread_km(const EdgeSet& edges, const NodeSet& source, const NodeSet& target,
                             int64_t threads);
// In two steps: those of each block of parallel_for(), and of all `num_edges`.
struct LengthBlock {
  double min = 0.0, max = 0.0, sum = 0.0;  // km
};
std::vector<LengthBlock> edge_length_blocks_km(const EdgeSet& edges, const NodeSet& source,
                                               const NodeSet& target, int64_t threads);
Spread spread_of_blocks(const std::vector<LengthBlock>& blocks, int64_t num_edges);
Spread spread_of(const std::vector<float>& values);

// Without lengths and attributes: a pass over the indices. `threads` as below.
GraphStatistics degrees_of(const Graph& graph, int64_t threads = 0);
// All of it. `threads` 0: all of the machine; what comes out does not depend on it.
GraphStatistics statistics_of(const Graph& graph, int64_t threads = 0);

}  // namespace aifs::graph
