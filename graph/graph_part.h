// SPDX-License-Identifier: Apache-2.0
// The part of a graph that one of the ranks that share a sample works on: all nodes, and the edges
// that end at its own. Made of slices (graph/graph_slice.h); no rank has all edges at any time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/peers.h"
#include "graph/base/graph.h"
#include "graph/partition.h"

namespace aifs::graph {

struct GraphSlice;

// The edges of one set that end at nodes of this rank.
struct OwnEdges {
  LocalEdgeSet local;                           // what local_edges() makes of the whole set
  std::map<std::string, Attribute> attributes;  // (m, width), in the order of `local`
  int64_t total = 0;                            // M
};

// How many edges each rank has, and the rows that each needs of each other for them.
struct EdgeTraffic {
  std::vector<int64_t> edges;  // (R)
  std::vector<int64_t> rows;   // (R, R): needed by the first, owned by the second
};

struct GraphPart {
  Graph graph;  // node sets whole; edge sets by name, attributes by name and width, without values
  std::vector<OwnEdges> own;  // of each edge set
};

// Gives every edge to the rank that owns its target; arrays of the slice go one after the other.
// `mapper_sources` is for edges between two sets, those within one want halos. The partition is
// over the peers. Collective.
GraphPart take_part(GraphSlice slice, const GraphPartition& partition, SourceRows mapper_sources,
                    Peers& peers);

// Of edges with halos; without there are no rows. Collective.
EdgeTraffic traffic_of(const OwnEdges& own, Peers& peers);

}  // namespace aifs::graph
