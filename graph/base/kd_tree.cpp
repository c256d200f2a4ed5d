// SPDX-License-Identifier: Apache-2.0
#include "graph/base/kd_tree.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "core/check.h"
#include "graph/base/parallel_for.h"

namespace aifs::graph {

namespace {

constexpr int64_t kLeafItems = 8;

// Joins the rows found by blocks of queries, in the order of the blocks.
NeighbourLists join_blocks(int64_t num_queries, const std::vector<int32_t>& row_sizes,
                           const std::vector<std::vector<int32_t>>& blocks) {
  NeighbourLists lists;
  lists.offset.resize(static_cast<size_t>(num_queries) + 1, 0);
  for (size_t q = 0; q < row_sizes.size(); ++q)
    lists.offset[q + 1] = lists.offset[q] + row_sizes[q];
  lists.index.reserve(static_cast<size_t>(lists.offset.back()));
  for (const auto& block : blocks)
    lists.index.insert(lists.index.end(), block.begin(), block.end());
  return lists;
}

// Runs search(query, found) for all queries and keeps the first `most` neighbours of each.
template <class Query, class Search>
NeighbourLists search_all(const std::vector<Query>& queries, int64_t most, int64_t num_threads,
                          const Search& search) {
  const auto num_queries = static_cast<int64_t>(queries.size());
  std::vector<int32_t> row_sizes(queries.size());
  std::vector<std::vector<int32_t>> blocks(static_cast<size_t>(num_blocks(num_queries)));
  parallel_for(num_queries, num_threads, [&](int64_t block, int64_t begin, int64_t end) {
    std::vector<Neighbour> found;
    auto& rows = blocks[static_cast<size_t>(block)];
    for (auto q = static_cast<size_t>(begin); q < static_cast<size_t>(end); ++q) {
      search(queries[q], found);
      if (static_cast<int64_t>(found.size()) > most) found.resize(static_cast<size_t>(most));
      row_sizes[q] = static_cast<int32_t>(found.size());
      for (const Neighbour& neighbour : found)
        rows.push_back(neighbour.index);
    }
  });
  return join_blocks(num_queries, row_sizes, blocks);
}

class Within {
 public:
  Within(double distance2, std::vector<Neighbour>& found) : limit_(distance2), found_(found) {}
  double limit() const { return limit_; }
  void add(const Neighbour& neighbour) {
    if (neighbour.distance2 <= limit_) found_.push_back(neighbour);
  }

 private:
  double limit_;
  std::vector<Neighbour>& found_;
};

}  // namespace

// The k best so far, sorted; k is small, so that insertion beats a heap.
template <class Real>
class KdTree<Real>::Nearest {
 public:
  Nearest(int64_t k, std::vector<Neighbour>& found) : k_(static_cast<size_t>(k)), found_(found) {}
  double limit() const {
    return found_.size() < k_ ? std::numeric_limits<double>::infinity() : found_.back().distance2;
  }
  void add(const Neighbour& neighbour) {
    if (found_.size() == k_) {
      if (!(neighbour < found_.back())) return;
      found_.pop_back();
    }
    found_.insert(std::upper_bound(found_.begin(), found_.end(), neighbour), neighbour);
  }

 private:
  size_t k_;
  std::vector<Neighbour>& found_;
};

template <class Real>
KdTree<Real>::KdTree(const std::vector<Point<Real>>& points, int64_t num_threads) {
  AIFS_CHECK(points.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
             points.size(), " points are more than a 32-bit index can count");
  items_.resize(points.size());
  for (size_t i = 0; i < points.size(); ++i)
    items_[i] = {points[i], static_cast<int32_t>(i)};
  int64_t num_leaves = 1;
  while (num_leaves * kLeafItems < num_points())
    num_leaves *= 2;
  first_leaf_ = num_leaves - 1;
  boxes_.resize(static_cast<size_t>(2 * num_leaves - 1));
  if (!items_.empty()) build(root(), effective_threads(num_threads));
}

template <class Real>
void KdTree<Real>::build(const Range& range, int64_t num_threads) {
  Box& box = boxes_[static_cast<size_t>(range.node)];
  const auto first = items_.begin() + range.begin, last = items_.begin() + range.end;
  box = {first->point, first->point};
  for (auto item = first; item != last; ++item) {
    for (size_t d = 0; d < 3; ++d) {
      box.low[d] = std::min(box.low[d], item->point[d]);
      box.high[d] = std::max(box.high[d], item->point[d]);
    }
  }
  if (is_leaf(range)) return;
  size_t axis = 0;
  for (size_t d = 1; d < 3; ++d) {
    if (box.high[d] - box.low[d] > box.high[axis] - box.low[axis]) axis = d;
  }
  std::nth_element(first, items_.begin() + range.right().begin, last,
                   [axis](const Item& a, const Item& b) {
                     return a.point[axis] < b.point[axis] ||
                            (a.point[axis] == b.point[axis] && a.index < b.index);
                   });
  if (num_threads > 1 && range.end - range.begin > kBlockItems) {
    std::thread helper([&] { build(range.left(), num_threads / 2); });
    build(range.right(), num_threads - num_threads / 2);
    helper.join();
  } else {
    build(range.left(), 1);
    build(range.right(), 1);
  }
}

// Never larger than the distance to a point in the box, in floating point too: the operations are
// those of squared_distance(), and rounding is monotonous.
template <class Real>
double KdTree<Real>::Box::distance2(const Point<Real>& query) const {
  Point<Real> clamped;
  for (size_t d = 0; d < 3; ++d)
    clamped[d] = std::min(std::max(query[d], low[d]), high[d]);
  return squared_distance(query, clamped);
}

template <class Real>
template <class Visitor>
void KdTree<Real>::visit(const Range& range, double box_distance2, const Point<Real>& query,
                         Visitor& visitor) const {
  if (box_distance2 > visitor.limit()) return;
  if (is_leaf(range)) {
    for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.end); ++i)
      visitor.add({squared_distance(query, items_[i].point), items_[i].index});
    return;
  }
  Range near = range.left(), far = range.right();
  double near_distance2 = boxes_[static_cast<size_t>(near.node)].distance2(query);
  double far_distance2 = boxes_[static_cast<size_t>(far.node)].distance2(query);
  if (far_distance2 < near_distance2) {
    std::swap(near, far);
    std::swap(near_distance2, far_distance2);
  }
  visit(near, near_distance2, query, visitor);
  visit(far, far_distance2, query, visitor);
}

template <class Real>
void KdTree<Real>::nearest(const Point<Real>& query, int64_t k,
                           std::vector<Neighbour>& found) const {
  found.clear();
  if (items_.empty() || k <= 0) return;
  Nearest visitor(k, found);
  visit(root(), 0.0, query, visitor);
}

template <class Real>
void KdTree<Real>::within(const Point<Real>& query, double distance2,
                          std::vector<Neighbour>& found) const {
  found.clear();
  if (items_.empty()) return;
  Within visitor(distance2, found);
  visit(root(), boxes_[0].distance2(query), query, visitor);
}

template <class Real>
NeighbourLists KdTree<Real>::nearest(const std::vector<Point<Real>>& queries, int64_t k,
                                     int64_t num_threads) const {
  return search_all(queries, k, num_threads,
                    [&](const Point<Real>& query, auto& found) { nearest(query, k, found); });
}

template <class Real>
NeighbourLists KdTree<Real>::within(const std::vector<Point<Real>>& queries, double distance2,
                                    int64_t max_neighbours, int64_t num_threads) const {
  return search_all(queries, max_neighbours, num_threads,
                    [&](const Point<Real>& query, auto& found) {
                      within(query, distance2, found);
                      std::sort(found.begin(), found.end());
                    });
}

template class KdTree<float>;
template class KdTree<double>;

}  // namespace aifs::graph
