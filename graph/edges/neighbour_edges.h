// SPDX-License-Identifier: Apache-2.0
// Edges between near nodes of two sets, selected by chord length (geometry.h says with which
// roundings). The searching side comes first in the order of the edges: targets ascend (sources for
// the reversed builders), and within one of them the found nodes are ordered by (distance, index).
// All builders are deterministic and independent of the number of threads (0: all of the machine).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/peers.h"
#include "graph/base/edge_list.h"
#include "graph/base/graph.h"

namespace aifs::graph {

// One side of a search. With a mask (one byte per node) only nodes with a value other than 0 take
// part; indices of edges always count all nodes.
struct SearchNodes {
  std::span<const float> lat_rad, lon_rad;  // (N)
  std::span<const uint8_t> mask = {};       // (N), or empty: all nodes
  Peers* peers = nullptr;  // of the searching side: each searches for some nodes; null: for all

  SearchNodes(const NodeSet& nodes, std::span<const uint8_t> mask_values = {})
      : lat_rad(nodes.lat_rad), lon_rad(nodes.lon_rad), mask(mask_values) {}
  SearchNodes(std::span<const float> lat, std::span<const float> lon)
      : lat_rad(lat), lon_rad(lon) {}
};

// With peers the nodes of the searching side are divided over them in their order: each gets the
// edges of its own. Calls are collective then.

// The largest distance (chord) of a node to its nearest neighbour in the same set; masks do not
// count. Nodes at the same place are no neighbours. Throws Error for fewer than two places.
double reference_distance(const SearchNodes& nodes, int64_t num_threads);

// The `k` nearest sources of every target. Throws Error if there are fewer than k.
EdgeList knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                   int64_t num_threads);
// The `k` nearest targets of every source.
EdgeList reversed_knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                            int64_t num_threads);
// The edges of knn_edges(k) that reversed_knn_edges(reversed_k) has, too; order of the former.
EdgeList mutual_knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                          int64_t reversed_k, int64_t num_threads);

// A search radius: a multiple of the reference distance of the searching side's node set, or a
// length on the Earth (taken as a chord of the unit sphere, km / 6371). Exactly one is given.
struct CutOff {
  std::optional<double> factor;
  std::optional<double> distance_km;
  int64_t max_neighbours = 64;  // the nearest ones are kept

  // As a chord. Throws Error if not exactly one of the two is given, or it is not positive.
  double radius(const SearchNodes& searching, int64_t num_threads) const;
};

// All sources within the radius of every target.
EdgeList cut_off_edges(const SearchNodes& source, const SearchNodes& target, const CutOff& cut_off,
                       int64_t num_threads);
// All targets within the radius of every source; reference distance of the sources.
EdgeList reversed_cut_off_edges(const SearchNodes& source, const SearchNodes& target,
                                const CutOff& cut_off, int64_t num_threads);

}  // namespace aifs::graph
