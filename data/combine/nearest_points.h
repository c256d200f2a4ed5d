// SPDX-License-Identifier: Apache-2.0
// Nearest neighbours among fixed points on the unit sphere, for combining grids. Cutouts depend on
// which of several equally distant neighbours comes first, so points are divided and visited in the
// order of scipy's cKDTree (leaves of 16 points, boxes halved at the median of their longest side,
// the closest box first), which the reference asks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace aifs::data {

using Point = std::array<double, 3>;

// Unit vectors of coordinates in degrees.
std::vector<Point> unit_vectors(std::span<const double> latitudes_deg,
                                std::span<const double> longitudes_deg);

class NearestPoints {
 public:
  explicit NearestPoints(std::vector<Point> points);

  struct Neighbour {
    double distance2 = 0.0;  // squared chord
    int64_t index = 0;       // of the point
  };
  // The k nearest points closer than a squared distance, nearest first; fewer if there are fewer.
  std::vector<Neighbour> query(const Point& at, size_t k, double below_distance2) const;

 private:
  struct Node {
    int64_t begin = 0, end = 0;  // of indices_
    int axis = -1;               // -1: a leaf
    double split = 0.0;
    size_t less = 0, greater = 0;
  };
  size_t build(int64_t begin, int64_t end);
  // Divides the points of a node; false if they are all the same.
  bool divide(Node& node, int64_t& middle);

  std::vector<Point> points_;
  std::vector<int64_t> indices_;
  std::vector<Node> nodes_;
  Point low_{}, high_{};
};

}  // namespace aifs::data
