// SPDX-License-Identifier: Apache-2.0
// Node sets and edges of reference files, and how near ours are.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "conformance/graph_setup.h"
#include "conformance/report.h"

namespace aifs::conformance {

inline constexpr double kCoordinateLimit = 1e-6;  // radians
// Radians: directions of shorter edges are rounding noise.
inline constexpr double kShortEdge = 1e-3;

// The coordinates in tensor `<tensor>` (N, 2), float32 radians.
graph::NodeSet read_node_set(const SafetensorsFile& file, const std::string& tensor,
                             const std::string& name);
// Tensor (2, M).
graph::EdgeList read_edge_list(const SafetensorsFile& file, const std::string& tensor);
// A tensor as values of one column or more.
graph::Attribute read_attribute(const SafetensorsFile& file, const std::string& tensor);
// Columns of a (N, 2) tensor in degrees.
graph::Coordinates read_degrees(const SafetensorsFile& file, const std::string& tensor);

// The largest chord between nodes of the same number; infinity if their numbers differ.
double largest_distance(const graph::NodeSet& a, const graph::NodeSet& b);

// The stored number of each of our nodes, found by position (the order of nodes with equal latitude
// is an accident). Throws DataError unless the sets agree one to one within `limit` (chord).
std::vector<int32_t> match_nodes(const graph::NodeSet& ours, const graph::NodeSet& stored,
                                 double limit);

// Edges with their ends renumbered.
graph::EdgeList renumbered(const graph::EdgeList& edges, const std::vector<int32_t>& source_number,
                           const std::vector<int32_t>& target_number);

// Requires that both hold the same edges. Edges whose length equals the limit of a search within
// 2e-7 may be in one list only: there, rounding decides. `built` counts nodes as in `stored`.
void compare_edges(Comparison& comparison, const std::string& what, const BuiltEdges& built,
                   const graph::EdgeList& stored, const graph::NodeSet& source,
                   const graph::NodeSet& target);

// Largest absolute difference to a tensor, over the rows where use(row) holds; infinity if sizes
// differ. NaN equals NaN.
template <class Real, class Use>
double largest_difference(const Values<Real>& values, const SafetensorsFile& file,
                          const std::string& tensor, const Use& use) {
  const std::vector<double> stored = file.doubles(tensor);
  if (stored.size() != values.rows.size()) return std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto ours = static_cast<double>(values.rows[i]);
    if (!use(i / static_cast<size_t>(values.width))) continue;
    if (std::isnan(ours) && std::isnan(stored[i])) continue;
    const double difference = std::abs(ours - stored[i]);
    if (!(difference <= most)) most = difference;
  }
  return most;
}

// Largest difference relative to the stored value (absolute where that is 0).
template <class Real>
double largest_relative_difference(const std::vector<Real>& values, const SafetensorsFile& file,
                                   const std::string& tensor);

// Compares coordinates in radians one by one; longitudes may differ by full turns.
void compare_coordinates(Comparison& comparison, const std::string& what,
                         const graph::NodeSet& ours, const graph::NodeSet& stored, double limit);

}  // namespace aifs::conformance
