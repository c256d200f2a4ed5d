// SPDX-License-Identifier: Apache-2.0
// Nodes without edges between data and meshes: which they are, why, and the nearest setting of the
// builder that leaves none.
//
// Builders of neighbours search from one set, the searching one, in the other. A node of the other
// set has no edge because none of the searching nodes is within the radius, or because each of them
// has its `most` edges to nearer ones. A larger radius or cap only adds edges; so the smallest
// radius that reaches all, and then the smallest cap, leave no node without.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "graph/recipe.h"
#include "graph/statistics.h"

namespace aifs::graph {

struct UnconnectedNodes {
  std::string set, other;           // nodes of `set` have no edge from or to `other`
  bool are_sources = false;         // no edge starts there
  bool is_data = false;             // of a dataset: not seen, or without a forecast
  int64_t num_nodes = 0;            // of the set, with and without edges
  std::vector<int32_t> nodes = {};  // ascending, at least one
  std::string reason = {};          // after explain(): cause and cure; empty: not known

  // "12 of 642 (1.9 %) data nodes have no edge to 'hidden'".
  std::string text() const;
};

// Between data and meshes: cells that no edge leaves or reaches, and mesh nodes that no edge from
// data reaches. In the order of the edge sets.
std::vector<UnconnectedNodes> unconnected_nodes(const GraphStatistics& statistics);

// What a search was limited by.
struct SearchLimits {
  std::optional<double> radius = {};  // chord on the unit sphere; empty: none
  std::optional<int64_t> most = {};   // edges of a searching node; empty: no limit
};

// How many nodes have no edge for which reason, and the smallest limits that leave none.
struct Coverage {
  int64_t num_beyond_radius = 0, num_over_cap = 0;
  SearchLimits cure = {};
};

// `found` and `searching` are nodes without edges of the two sets that the limits leave. Not for
// searches with masks.
struct SearchedSets {
  const NodeSet& found;
  const NodeSet& searching;
  std::vector<int32_t> found_without = {}, searching_without = {};
};
Coverage coverage_of(const SearchedSets& sets, const SearchLimits& limits, int64_t threads = 0);

// Adds to each the reason: by the options of the builder if `recipe` has its edges, else how far
// the other set is.
void explain(std::vector<UnconnectedNodes>& all, const Graph& graph, const Recipe* recipe,
             int64_t threads = 0);

}  // namespace aifs::graph
