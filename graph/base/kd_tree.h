// SPDX-License-Identifier: Apache-2.0
// Neighbour searches among fixed points. Squared distances are compared in double whatever the type
// of the points, equal distances are ordered by index, so every answer is unique: it depends
// neither on the number of threads nor on the shape of the tree.
//
// The tree is complete and implicit: every node halves its range of the re-ordered points at the
// longest side of its bounding box, all leaves have the same depth. Memory: (3 Real + int32) per
// point plus about 1 Real per point for the boxes. At most 2^31 - 1 points.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/geometry.h"

namespace aifs::graph {

struct Neighbour {
  double distance2;  // squared
  int32_t index;     // position in the points the tree was made of
  bool operator<(const Neighbour& other) const {
    return distance2 < other.distance2 || (distance2 == other.distance2 && index < other.index);
  }
};

// Neighbours of many queries, as rows of one flat list: row q is [offset[q], offset[q + 1]).
struct NeighbourLists {
  std::vector<int64_t> offset;  // (number of queries + 1)
  std::vector<int32_t> index;

  int64_t num_queries() const { return static_cast<int64_t>(offset.size()) - 1; }
};

template <class Real>
class KdTree {
 public:
  explicit KdTree(const std::vector<Point<Real>>& points, int64_t num_threads = 1);

  int64_t num_points() const { return static_cast<int64_t>(items_.size()); }

  // The k nearest points (fewer if the tree has fewer), nearest first. `found` is overwritten.
  void nearest(const Point<Real>& query, int64_t k, std::vector<Neighbour>& found) const;
  // All points with squared distance <= distance2, in an order fixed by the points of the tree.
  void within(const Point<Real>& query, double distance2, std::vector<Neighbour>& found) const;

  // The same for many queries, nearest first; at most `max_neighbours` per query, the nearest ones.
  NeighbourLists nearest(const std::vector<Point<Real>>& queries, int64_t k,
                         int64_t num_threads) const;
  NeighbourLists within(const std::vector<Point<Real>>& queries, double distance2,
                        int64_t max_neighbours, int64_t num_threads) const;

 private:
  struct Item {
    Point<Real> point;
    int32_t index;
  };
  struct Box {
    Point<Real> low, high;
    double distance2(const Point<Real>& query) const;
  };
  struct Range {
    int64_t node, begin, end;  // heap position; items
    Range left() const { return {2 * node + 1, begin, begin + (end - begin) / 2}; }
    Range right() const { return {2 * node + 2, begin + (end - begin) / 2, end}; }
  };
  class Nearest;

  void build(const Range& range, int64_t num_threads);
  bool is_leaf(const Range& range) const { return range.node >= first_leaf_; }
  Range root() const { return {0, 0, num_points()}; }
  template <class Visitor>
  void visit(const Range& range, double box_distance2, const Point<Real>& query,
             Visitor& visitor) const;

  std::vector<Item> items_;
  std::vector<Box> boxes_;
  int64_t first_leaf_ = 0;
};

extern template class KdTree<float>;
extern template class KdTree<double>;

}  // namespace aifs::graph
