// SPDX-License-Identifier: Apache-2.0
#include "data/combine/nearest_points.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/check.h"

namespace aifs::data {

namespace {

constexpr int64_t kLeafPoints = 16;

// A binary heap with the smallest key on top. Equal keys keep the order that the textbook gives
// them, which std::priority_queue does not.
template <class Value>
class Heap {
 public:
  struct Item {
    double key;
    Value value;
  };
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const Item& top() const { return items_.front(); }

  void push(double key, Value value) {
    items_.push_back({key, value});
    for (size_t i = items_.size() - 1; i > 0;) {
      const size_t parent = (i - 1) / 2;
      if (!(items_[i].key < items_[parent].key)) break;
      std::swap(items_[i], items_[parent]);
      i = parent;
    }
  }

  Item pop() {
    const Item top = items_.front();
    items_.front() = items_.back();
    items_.pop_back();
    for (size_t i = 0;;) {
      const size_t left = 2 * i + 1, right = left + 1;
      size_t next = i;
      if (left < items_.size() && items_[i].key > items_[left].key) next = left;
      if (right < items_.size() && items_[i].key > items_[right].key) next = right;
      if (next == i) break;
      if (right < items_.size()) next = items_[left].key > items_[right].key ? right : left;
      std::swap(items_[i], items_[next]);
      i = next;
    }
    return top;
  }

 private:
  std::vector<Item> items_;
};

double squared_distance(const Point& a, const Point& b) {
  double sum = 0.0;
  for (size_t axis = 0; axis < 3; ++axis)
    sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
  return sum;
}

// A box that waits to be looked into.
struct Box {
  size_t node = 0;
  double distance2 = 0.0;
  Point side2{};  // its parts along the axes
};

}  // namespace

std::vector<Point> unit_vectors(std::span<const double> latitudes_deg,
                                std::span<const double> longitudes_deg) {
  constexpr double kRadian = std::numbers::pi / 180.0;
  std::vector<Point> points(latitudes_deg.size());
  for (size_t n = 0; n < points.size(); ++n) {
    const double phi = latitudes_deg[n] * kRadian, lambda = longitudes_deg[n] * kRadian;
    points[n] = {std::cos(phi) * std::cos(lambda), std::cos(phi) * std::sin(lambda), std::sin(phi)};
  }
  return points;
}

NearestPoints::NearestPoints(std::vector<Point> points) : points_(std::move(points)) {
  AIFS_CHECK(!points_.empty(), "there are no points");
  indices_.resize(points_.size());
  std::iota(indices_.begin(), indices_.end(), int64_t{0});
  low_ = high_ = points_.front();
  for (const Point& point : points_) {
    for (size_t axis = 0; axis < 3; ++axis) {
      low_[axis] = std::min(low_[axis], point[axis]);
      high_[axis] = std::max(high_[axis], point[axis]);
    }
  }
  build(0, static_cast<int64_t>(points_.size()));
}

bool NearestPoints::divide(Node& node, int64_t& middle) {
  const auto first = indices_.begin() + node.begin, last = indices_.begin() + node.end;
  Point low = points_[static_cast<size_t>(*first)], high = low;
  for (auto i = first; i != last; ++i) {
    const Point& point = points_[static_cast<size_t>(*i)];
    for (size_t axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], point[axis]);
      high[axis] = std::max(high[axis], point[axis]);
    }
  }
  size_t axis = 0;
  double longest = 0.0;
  for (size_t a = 0; a < 3; ++a) {
    if (high[a] - low[a] > longest) {
      axis = a;
      longest = high[a] - low[a];
    }
  }
  if (longest == 0.0) return false;
  const auto value = [&](int64_t i) { return points_[static_cast<size_t>(i)][axis]; };
  const auto smaller = [&](int64_t a, int64_t b) { return value(a) < value(b); };
  const auto halfway = first + (last - first) / 2;
  std::nth_element(first, halfway, last, smaller);
  node.split = value(*halfway);
  const auto is_below = [&](int64_t i) { return value(i) < node.split; };
  auto cut = std::partition(first, halfway, is_below);
  if (cut == first) {  // half of the points or more share the smallest value
    node.split = std::nextafter(value(*std::min_element(first, last, smaller)), HUGE_VAL);
    cut = std::partition(first, last, is_below);
  }
  node.axis = static_cast<int>(axis);
  middle = cut - indices_.begin();
  return true;
}

size_t NearestPoints::build(int64_t begin, int64_t end) {
  const size_t number = nodes_.size();
  Node node{begin, end};
  nodes_.push_back(node);
  int64_t middle = 0;
  if (end - begin <= kLeafPoints || !divide(node, middle)) return number;
  node.less = build(begin, middle);
  node.greater = build(middle, end);
  nodes_[number] = node;
  return number;
}

std::vector<NearestPoints::Neighbour> NearestPoints::query(const Point& at, size_t k,
                                                           double below_distance2) const {
  Heap<Box> boxes;
  Heap<int64_t> found;  // by distance, the largest on top
  Box box;
  for (size_t axis = 0; axis < 3; ++axis) {
    const double outside = std::max({0.0, low_[axis] - at[axis], at[axis] - high_[axis]});
    box.side2[axis] = outside * outside;
    box.distance2 += box.side2[axis];
  }
  double limit = below_distance2;
  for (;;) {
    const Node& node = nodes_[box.node];
    if (node.axis < 0) {
      for (int64_t i = node.begin; i < node.end; ++i) {
        const int64_t index = indices_[static_cast<size_t>(i)];
        const double distance2 = squared_distance(points_[static_cast<size_t>(index)], at);
        if (!(distance2 < limit)) continue;
        if (found.size() == k) found.pop();
        found.push(-distance2, index);
        if (found.size() == k) limit = -found.top().key;
      }
      if (boxes.empty()) break;
      box = boxes.pop().value;
      continue;
    }
    if (box.distance2 > limit) break;
    const auto axis = static_cast<size_t>(node.axis);
    const bool is_less = at[axis] < node.split;
    const double side = is_less ? node.split - at[axis] : at[axis] - node.split;
    Box far = box;
    far.node = is_less ? node.greater : node.less;
    far.distance2 += side * side - far.side2[axis];
    far.side2[axis] = side * side;
    box.node = is_less ? node.less : node.greater;
    if (box.distance2 > far.distance2) std::swap(box, far);
    if (far.distance2 <= limit) boxes.push(far.distance2, far);
  }
  std::vector<Neighbour> nearest(found.size());
  for (size_t i = nearest.size(); i-- > 0;) {
    const auto item = found.pop();
    nearest[i] = {-item.key, item.value};
  }
  return nearest;
}

}  // namespace aifs::data
