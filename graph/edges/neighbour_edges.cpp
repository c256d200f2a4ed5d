// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/neighbour_edges.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/shares.h"
#include "graph/base/large_vector.h"
#include "graph/base/parallel_for.h"
#include "graph/base/sphere_search.h"

namespace aifs::graph {

namespace {

// The nodes that take part in a search.
class Selection {
 public:
  explicit Selection(const SearchNodes& nodes) : nodes_(nodes) {
    if (nodes.mask.empty()) return;
    AIFS_CHECK(nodes.mask.size() == nodes.lat_rad.size(), "a mask of ", nodes.mask.size(),
               " values for ", nodes.lat_rad.size(), " nodes");
    for (size_t i = 0; i < nodes.mask.size(); ++i)
      if (nodes.mask[i] != 0) numbers_.push_back(static_cast<int32_t>(i));
  }
  // The places in the selection of the nodes that this rank searches for.
  int64_t first() const { return starts()[0]; }
  int64_t num_searching() const { return starts()[1] - starts()[0]; }
  int64_t size() const {
    return static_cast<int64_t>(nodes_.mask.empty() ? nodes_.lat_rad.size() : numbers_.size());
  }
  int32_t node(int64_t i) const {
    return numbers_.empty() ? static_cast<int32_t>(i) : numbers_[static_cast<size_t>(i)];
  }
  // For a selection with nodes.
  SphereSearch<float> search(int64_t num_threads) const {
    return {nodes_.lat_rad, nodes_.lon_rad, numbers_, num_threads};
  }
  // Calls make(block)(i, place) for every node that this rank searches for, counted from its first;
  // each block has a functor of its own.
  template <class Make>
  void for_each_place(int64_t num_threads, const Make& make) const {
    const int64_t before = first();
    parallel_for(num_searching(), num_threads, [&](int64_t block, int64_t begin, int64_t end) {
      auto body = make(block);
      UnitVectors<float> unit_vector;
      for (int64_t i = begin; i < end; ++i) {
        const auto n = static_cast<size_t>(node(before + i));
        const float lat = nodes_.lat_rad[n], lon = nodes_.lon_rad[n];
        body(before + i, {lat, lon, unit_vector(lat, lon)});
      }
    });
  }

 private:
  // Where the share of this rank begins and ends.
  std::array<int64_t, 2> starts() const {
    if (!nodes_.peers) return {0, size()};
    const std::vector<int64_t> all = starts_of(balanced_counts(size(), nodes_.peers->size()));
    const auto rank = static_cast<size_t>(nodes_.peers->rank());
    return {all[rank], all[rank + 1]};
  }

  SearchNodes nodes_;
  std::vector<int32_t> numbers_;  // ascending; empty: all
};

using Place = SpherePlace<float>;

// Edges from the `k` nearest nodes to each searching one.
EdgeList nearest_edges(const SphereSearch<float>& search, const Selection& searching, int64_t k,
                       int64_t num_threads) {
  EdgeList edges;
  const auto width = static_cast<size_t>(k);
  edges.source_index =
      large_vector<int32_t>(static_cast<size_t>(searching.num_searching()) * width);
  edges.target_index = large_vector<int32_t>(edges.source_index.size());
  const int64_t before = searching.first();
  searching.for_each_place(num_threads, [&](int64_t) {
    return [&, found = std::vector<Neighbour>(), reach = SearchReach()](
               int64_t i, const Place& place) mutable {
      search.nearest(place, k, reach, found);
      const size_t first = static_cast<size_t>(i - before) * width;
      for (size_t j = 0; j < width; ++j) {
        edges.source_index[first + j] = found[j].index;
        edges.target_index[first + j] = searching.node(i);
      }
    };
  });
  return edges;
}

// The same from all nodes within a distance, the nearest ones if they are more than `most`.
EdgeList edges_within(const SphereSearch<float>& search, const Selection& searching,
                      double distance2, int64_t most, int64_t num_threads) {
  const auto blocks = static_cast<size_t>(num_blocks(searching.num_searching()));
  std::vector<EdgeList> parts(blocks);
  searching.for_each_place(num_threads, [&](int64_t block) {
    return [&, &part = parts[static_cast<size_t>(block)], found = std::vector<Neighbour>()](
               int64_t i, const Place& place) mutable {
      search.within(place, distance2, found);
      if (static_cast<int64_t>(found.size()) > most) found.resize(static_cast<size_t>(most));
      for (const Neighbour& neighbour : found)
        part.add(neighbour.index, searching.node(i));
    };
  });
  return joined(std::move(parts), num_threads);
}

EdgeList reversed(EdgeList edges) {
  std::swap(edges.source_index, edges.target_index);
  return edges;
}

}  // namespace

double reference_distance(const SearchNodes& nodes, int64_t num_threads) {
  SearchNodes unmasked(nodes.lat_rad, nodes.lon_rad);
  unmasked.peers = nodes.peers;
  const Selection all(unmasked);
  const SphereSearch<float> search = all.search(num_threads);
  std::vector<double> largest(static_cast<size_t>(num_blocks(all.num_searching())), 0.0);
  all.for_each_place(num_threads, [&](int64_t block) {
    return [&, &most = largest[static_cast<size_t>(block)], found = std::vector<Neighbour>(),
            reach = SearchReach()](int64_t, const Place& place) mutable {
      search.nearest(place, 2, reach, found);
      most = std::max(most, found.back().distance2);
    };
  });
  if (nodes.peers) largest = gather(*nodes.peers, largest).values;
  const double distance2 =
      largest.empty() ? 0.0 : *std::max_element(largest.begin(), largest.end());
  if (distance2 == 0.0) {
    throw Error(
        concat("no reference distance: the set has ", all.size(), " nodes, all at the same place"));
  }
  return std::sqrt(distance2);
}

EdgeList knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                   int64_t num_threads) {
  const Selection from(source), to(target);
  if (k < 1) throw Error(concat("the number of nearest neighbours must be positive, got ", k));
  if (k > from.size()) {
    throw Error(concat("cannot find ", k, " nearest neighbours among ", from.size(), " nodes"));
  }
  return nearest_edges(from.search(num_threads), to, k, num_threads);
}

EdgeList reversed_knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                            int64_t num_threads) {
  return reversed(knn_edges(target, source, k, num_threads));
}

EdgeList mutual_knn_edges(const SearchNodes& source, const SearchNodes& target, int64_t k,
                          int64_t reversed_k, int64_t num_threads) {
  const EdgeList forward = knn_edges(source, target, k, num_threads);
  // Sorted by (source, target), to be searched.
  const EdgeList backward =
      merge_edges(reversed_knn_edges(source, target, reversed_k, num_threads), {});
  const auto& sources = backward.source_index;
  const auto& targets = backward.target_index;
  EdgeList mutual;
  for (size_t e = 0; e < forward.source_index.size(); ++e) {
    const auto [first, last] =
        std::equal_range(sources.begin(), sources.end(), forward.source_index[e]);
    if (std::binary_search(targets.begin() + (first - sources.begin()),
                           targets.begin() + (last - sources.begin()), forward.target_index[e]))
      mutual.add(forward.source_index[e], forward.target_index[e]);
  }
  return mutual;
}

double CutOff::radius(const SearchNodes& searching, int64_t num_threads) const {
  if (factor.has_value() == distance_km.has_value()) {
    throw Error("a cut-off needs either a factor or a distance in km");
  }
  const double value = factor ? *factor : *distance_km;
  if (!(value > 0)) throw Error(concat("a cut-off must be positive, got ", value));
  return factor ? *factor * reference_distance(searching, num_threads)
                : *distance_km / kEarthRadius_km;
}

EdgeList cut_off_edges(const SearchNodes& source, const SearchNodes& target, const CutOff& cut_off,
                       int64_t num_threads) {
  if (cut_off.max_neighbours < 1) {
    throw Error(
        concat("the largest number of neighbours must be positive, got ", cut_off.max_neighbours));
  }
  const double radius = cut_off.radius(target, num_threads);
  const Selection from(source), to(target);
  if (from.size() == 0) return {};
  return edges_within(from.search(num_threads), to, radius * radius, cut_off.max_neighbours,
                      num_threads);
}

EdgeList reversed_cut_off_edges(const SearchNodes& source, const SearchNodes& target,
                                const CutOff& cut_off, int64_t num_threads) {
  return reversed(cut_off_edges(target, source, cut_off, num_threads));
}

}  // namespace aifs::graph
