// SPDX-License-Identifier: Apache-2.0
#include "graph/edges/neighbour_edges.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/kd_tree.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

// The nodes that take part in a search.
struct Selection {
  std::vector<Point<float>> points;
  std::vector<int32_t> index;  // numbers of the points among all nodes; empty: the points' own

  explicit Selection(const SearchNodes& nodes)
      : points(unit_vectors<float>(nodes.lat_rad, nodes.lon_rad)) {
    if (nodes.mask.empty()) return;
    AIFS_CHECK(nodes.mask.size() == points.size(), "a mask of ", nodes.mask.size(), " values for ",
               points.size(), " nodes");
    for (size_t i = 0; i < points.size(); ++i) {
      if (nodes.mask[i] == 0) continue;
      points[index.size()] = points[i];
      index.push_back(static_cast<int32_t>(i));
    }
    points.resize(index.size());
  }
  int64_t size() const { return static_cast<int64_t>(points.size()); }
  int32_t node(int32_t point) const {
    return index.empty() ? point : index[static_cast<size_t>(point)];
  }
};

// Turns rows of found points into edges from the found to the searching nodes.
EdgeList found_to_searching(const NeighbourLists& lists, const Selection& found,
                            const Selection& searching) {
  EdgeList edges;
  edges.source_index.reserve(lists.index.size());
  edges.target_index.reserve(lists.index.size());
  for (size_t q = 0; q + 1 < lists.offset.size(); ++q) {
    const int32_t target = searching.node(static_cast<int32_t>(q));
    for (auto i = static_cast<size_t>(lists.offset[q]);
         i < static_cast<size_t>(lists.offset[q + 1]); ++i)
      edges.add(found.node(lists.index[i]), target);
  }
  return edges;
}

EdgeList reversed(EdgeList edges) {
  std::swap(edges.source_index, edges.target_index);
  return edges;
}

}  // namespace

double reference_distance(const SearchNodes& nodes, int64_t num_threads) {
  const auto points = unit_vectors<float>(nodes.lat_rad, nodes.lon_rad);
  const KdTree<float> tree(points, num_threads);
  const auto num_points = static_cast<int64_t>(points.size());
  std::vector<double> largest(static_cast<size_t>(num_blocks(num_points)), 0.0);
  parallel_for(num_points, num_threads, [&](int64_t block, int64_t begin, int64_t end) {
    std::vector<Neighbour> found;
    double& most = largest[static_cast<size_t>(block)];
    for (int64_t i = begin; i < end; ++i) {
      tree.nearest(points[static_cast<size_t>(i)], 2, found);
      most = std::max(most, found.back().distance2);
    }
  });
  const double distance2 =
      largest.empty() ? 0.0 : *std::max_element(largest.begin(), largest.end());
  if (distance2 == 0.0) {
    throw Error(
        concat("no reference distance: the set has ", num_points, " nodes, all at the same place"));
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
  const KdTree<float> tree(from.points, num_threads);
  return found_to_searching(tree.nearest(to.points, k, num_threads), from, to);
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
  const KdTree<float> tree(from.points, num_threads);
  return found_to_searching(
      tree.within(to.points, radius * radius, cut_off.max_neighbours, num_threads), from, to);
}

EdgeList reversed_cut_off_edges(const SearchNodes& source, const SearchNodes& target,
                                const CutOff& cut_off, int64_t num_threads) {
  return reversed(cut_off_edges(target, source, cut_off, num_threads));
}

}  // namespace aifs::graph
