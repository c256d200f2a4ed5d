// SPDX-License-Identifier: Apache-2.0
// What differs between two graphs. Node sets are compared by name, node by node; edge sets by the
// names of their ends, edge by edge whatever the order, which is compared apart: weights that were
// learnt for edges belong to their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/graph.h"

namespace aifs::graph {

struct AttributeDifference {
  std::string name;
  bool only_in_a = false, only_in_b = false;
  int64_t width_a = 0, width_b = 0;
  double largest = 0.0;  // absolute difference of a value; infinite for NaN beside a number
  int64_t row = -1;      // of the node or edge (of graph a) where it is; -1: none differs
};

struct NodeSetDifference {
  std::string name;
  bool only_in_a = false, only_in_b = false;
  int64_t num_a = 0, num_b = 0;
  int64_t num_moved = 0;                             // nodes at another place, if both have as many
  double farthest_km = 0.0;                          // of a moved node
  int64_t farthest = -1;                             // that node
  std::vector<AttributeDifference> attributes = {};  // of sets of one size; those that differ
};

struct EdgeSetDifference {
  struct Edge {
    int32_t source, target;
  };
  std::string source, target;
  bool only_in_a = false, only_in_b = false;
  int64_t num_a = 0, num_b = 0;
  int64_t num_only_a = 0, num_only_b = 0;                  // edges
  std::vector<Edge> first_only_a = {}, first_only_b = {};  // a few of them
  bool other_order = false;                                // equal edges, not in the same order
  std::vector<AttributeDifference> attributes = {};  // of edges that both have; those that differ
};

struct GraphDifference {
  std::vector<NodeSetDifference> node_sets;  // those that differ
  std::vector<EdgeSetDifference> edge_sets;
  bool other_set_order = false;  // the sets do not stand in the same order

  bool none() const { return node_sets.empty() && edge_sets.empty() && !other_set_order; }
  // A line for everything that differs.
  std::string text() const;
};

// Attributes that differ by no more than `tolerance` count as equal, and so do coordinates that
// differ by no more radians.
GraphDifference difference_of(const Graph& a, const Graph& b, double tolerance = 0.0);

}  // namespace aifs::graph
