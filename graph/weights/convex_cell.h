// SPDX-License-Identifier: Apache-2.0
// Voronoi cells one at a time: a convex polygon around a point, cut by the bisector with one
// neighbour after the other, nearest first, until no farther neighbour can reach it. No global
// triangulation is needed; memory does not grow with the number of points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "graph/base/kd_tree.h"

namespace aifs::graph {

// A convex polygon in the plane, vertices counter-clockwise.
class ConvexCell {
 public:
  static constexpr int32_t kBorder = -1;
  struct Vertex {
    double u, v;
    int32_t edge;  // who made the edge that starts here: a neighbour, or kBorder
  };

  // The square |u|, |v| <= half_width.
  void reset(double half_width);
  // Keeps the part with a u + b v <= c; the new edge belongs to `neighbour`.
  void cut(double a, double b, double c, int32_t neighbour);

  const std::vector<Vertex>& vertices() const { return vertices_; }
  // Largest squared distance of a vertex to the origin.
  double radius2() const { return radius2_; }
  // Whether a part of the original square is left, i.e. the true cell may be unbounded.
  bool touches_border() const;

 private:
  void measure();

  std::vector<Vertex> vertices_, cut_;
  double radius2_ = 0.0;
  std::vector<double> inside_;
};

// Cells of regular grids are complete after 8 to 13 neighbours.
constexpr int64_t kFew = 14, kMany = 64;

// Calls cut(neighbour) for the points around `centre`, near ones first (then in rings of growing
// distance), until it has seen all that are nearer than the squared distance which cut() returned
// last: the distance beyond which no point can matter. `centre` itself is among the points.
template <class Cut>
void cut_by_neighbours(const KdTree<double>& tree, const Point<double>& centre,
                       std::vector<Neighbour>& found, const Cut& cut) {
  double reach2 = std::numeric_limits<double>::infinity();
  size_t done = 0;
  for (const int64_t k : {kFew, kMany}) {
    tree.nearest(centre, k, found);
    for (; done < found.size(); ++done) {
      if (found[done].distance2 >= reach2) return;
      reach2 = cut(found[done]);
    }
    if (static_cast<int64_t>(found.size()) == tree.num_points()) return;
  }
  double seen2 = found.back().distance2;
  while (seen2 < reach2) {
    const double next2 = std::max(4 * seen2, 1e-12);  // many points may share one place
    tree.within(centre, next2, found);
    for (const Neighbour& neighbour : found) {
      if (neighbour.distance2 >= seen2) reach2 = cut(neighbour);
    }
    if (static_cast<int64_t>(found.size()) == tree.num_points()) return;
    seen2 = next2;
  }
}

// The same by a search of the caller, for cells that few points make: within(distance2, found)
// gives all points at most that far away, in any order. `first2`: how far to look first. Returns
// how far points mattered, or nothing if more than kMany did.
template <class Within, class Cut>
std::optional<double> cut_by_few(int64_t num_points, double first2, const Within& within,
                                 std::vector<Neighbour>& found, const Cut& cut) {
  double reach2 = std::numeric_limits<double>::infinity();
  size_t done = 0;
  for (double seen2 = first2;; seen2 = std::min(4 * seen2, 1.02 * reach2)) {
    within(seen2, found);
    std::sort(found.begin(), found.end());  // begins as before
    for (; done < found.size() && found[done].distance2 < reach2; ++done) {
      if (done == static_cast<size_t>(kMany)) return std::nullopt;
      reach2 = cut(found[done]);
    }
    if (seen2 >= reach2 || static_cast<int64_t>(found.size()) == num_points) return reach2;
  }
}

}  // namespace aifs::graph
