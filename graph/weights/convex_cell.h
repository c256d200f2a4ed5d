// SPDX-License-Identifier: Apache-2.0
// Voronoi cells one at a time: a convex polygon around a point, cut by the bisector with one
// neighbour after the other, nearest first, until no farther neighbour can reach it. No global
// triangulation is needed; memory does not grow with the number of points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
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
  double radius2() const;
  // Whether a part of the original square is left, i.e. the true cell may be unbounded.
  bool touches_border() const;

 private:
  std::vector<Vertex> vertices_, cut_;
  std::vector<double> inside_;
};

// Calls cut(neighbour) for the points around `centre`, near ones first (then in rings of growing
// distance), until it has seen all that are nearer than the squared distance which cut() returned
// last: the distance beyond which no point can matter. `centre` itself is among the points.
template <class Cut>
void cut_by_neighbours(const KdTree<double>& tree, const Point<double>& centre,
                       std::vector<Neighbour>& found, const Cut& cut) {
  // Cells of regular grids are complete after 8 to 13 neighbours.
  constexpr int64_t kFew = 14, kMany = 64;
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

// The same by a search of the caller: within(distance2, found) gives all points at most that far
// away, in any order. Few points are sorted, so that the cell is that of cut_by_neighbours() to the
// last bit. `first2`: how far to look first; returns how far points mattered.
template <class Within, class Cut>
double cut_in_rings(int64_t num_points, double first2, const Within& within,
                    std::vector<Neighbour>& found, const Cut& cut) {
  constexpr size_t kMostSorted = 1024;
  double reach2 = std::numeric_limits<double>::infinity(), seen2 = 0.0;
  for (double next2 = first2; seen2 < reach2; next2 = std::min(4 * seen2, 1.02 * reach2)) {
    within(next2, found);
    const bool is_sorted = found.size() <= kMostSorted;
    if (is_sorted) std::sort(found.begin(), found.end());
    for (const Neighbour& neighbour : found) {
      if (neighbour.distance2 <= seen2 && seen2 > 0) continue;
      if (neighbour.distance2 < reach2) {
        reach2 = cut(neighbour);
      } else if (is_sorted) {
        return reach2;
      }
    }
    if (static_cast<int64_t>(found.size()) == num_points) break;
    seen2 = next2;
  }
  return reach2;
}

}  // namespace aifs::graph
