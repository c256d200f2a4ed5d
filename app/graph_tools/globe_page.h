// SPDX-License-Identifier: Apache-2.0
// The page of `aifs-train graph plot`: the files of app/graph_tools/page in one, with the graph as
// JSON in the element "graph". Coordinates are base64 of fp32, little-endian; lists of indices are
// base64 of their differences, as written by encode_indices().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/base/graph.h"
#include "graph/statistics.h"
#include "graph/unconnected.h"

namespace aifs::app {

struct GlobeInput {
  const graph::Graph& graph;
  const graph::GraphStatistics& statistics;                 // of it
  const std::vector<graph::UnconnectedNodes>& unconnected;  // of it
  std::string title, origin;
  int64_t max_edges = 0;  // 0: no limit
};

std::string globe_page(const GlobeInput& input);

// Returns an n for each set of so many edges: the page keeps the edges of every n-th target. Sets
// share `max_edges` (0: no limit) evenly unless they need less.
std::vector<int64_t> thinning(const std::vector<int64_t>& num_edges, int64_t max_edges);

// Each difference d to the index before (0 before the first) as 2 d, or -2 d - 1 if it is negative,
// in groups of 7 bits, the low ones first; the highest bit of a byte says that more follow.
std::string encode_indices(std::span<const int32_t> indices);

}  // namespace aifs::app
