// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/planar_weights.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "graph/base/parallel_for.h"
#include "graph/weights/convex_cell.h"

namespace aifs::graph {

namespace {

using PlanePoint = Point<double>;  // (latitude, longitude, 0)

constexpr double kTrust = 1.2;

std::vector<PlanePoint> plane_points(std::span<const float> lat_rad,
                                     std::span<const float> lon_rad) {
  double sum_sin = 0.0, sum_cos = 0.0;
  for (const double lon : lon_rad) {
    sum_sin += std::sin(lon);
    sum_cos += std::cos(lon);
  }
  const double centre = std::atan2(sum_sin, sum_cos);
  std::vector<PlanePoint> points(lat_rad.size());
  for (size_t i = 0; i < points.size(); ++i) {
    double turn = std::fmod(static_cast<double>(lon_rad[i]) - centre + kPi, 2 * kPi);
    if (turn < 0) turn += 2 * kPi;
    points[i] = {lat_rad[i], turn - kPi + centre, 0.0};
  }
  return points;
}

// Twice the longest distance of any two points, or more.
double safe_half_width(const std::vector<PlanePoint>& points) {
  PlanePoint low = points.front(), high = points.front();
  for (const PlanePoint& point : points) {
    for (size_t d = 0; d < 2; ++d) {
      low[d] = std::min(low[d], point[d]);
      high[d] = std::max(high[d], point[d]);
    }
  }
  return 2 * std::hypot(high[0] - low[0], high[1] - low[1]);
}

double polygon_area(const ConvexCell& cell) {
  double twice = 0.0;
  const auto& vertices = cell.vertices();
  for (size_t i = 0; i < vertices.size(); ++i) {
    const auto& a = vertices[i];
    const auto& b = vertices[i + 1 == vertices.size() ? 0 : i + 1];
    twice += a.u * b.v - a.v * b.u;
  }
  return twice / 2;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

class PlanarCells {
 public:
  PlanarCells(std::vector<PlanePoint> points, int64_t num_threads)
      : points_(std::move(points)),
        tree_(points_, num_threads),
        half_width_(safe_half_width(points_)) {}

  struct Scratch {
    ConvexCell cell;
    std::vector<Neighbour> found;
  };

  // The area of the node's cell, or 0 if the cell is not to be trusted.
  double trusted_area(int64_t node, Scratch& scratch) const {
    const PlanePoint& p = points_[static_cast<size_t>(node)];
    ConvexCell& cell = scratch.cell;
    bool is_copy = false;  // of a node with a smaller number at the same place
    cell.reset(half_width_);
    cut_by_neighbours(tree_, p, scratch.found, [&](const Neighbour& neighbour) {
      if (neighbour.distance2 > 0) {
        const PlanePoint& q = points_[static_cast<size_t>(neighbour.index)];
        cell.cut(q[0] - p[0], q[1] - p[1], neighbour.distance2 / 2, neighbour.index);
      } else if (neighbour.index < node) {
        is_copy = true;
      }
      return 4 * cell.radius2();
    });
    if (is_copy || cell.touches_border()) return 0.0;
    const double limit = kTrust * median(neighbour_distances(p, cell));
    return cell.radius2() <= limit * limit ? polygon_area(cell) : 0.0;
  }

 private:
  std::vector<double> neighbour_distances(const PlanePoint& p, const ConvexCell& cell) const {
    // Shorter edges are rounding errors of corners where more than three cells meet.
    const double least2 = 1e-24 * cell.radius2();
    std::vector<double> distances;
    const auto& vertices = cell.vertices();
    for (size_t i = 0; i < vertices.size(); ++i) {
      const auto& a = vertices[i];
      const auto& b = vertices[i + 1 == vertices.size() ? 0 : i + 1];
      const double du = b.u - a.u, dv = b.v - a.v;
      if (du * du + dv * dv <= least2) continue;
      distances.push_back(std::sqrt(squared_distance(p, points_[static_cast<size_t>(a.edge)])));
    }
    return distances;
  }

  std::vector<PlanePoint> points_;
  KdTree<double> tree_;
  double half_width_;
};

// Gives nodes without a cell of their own the area of the nearest node that has one.
void fill_from_nearest(const std::vector<PlanePoint>& points, PlanarWeights& weights,
                       int64_t num_threads) {
  std::vector<PlanePoint> trusted, others;
  std::vector<double> trusted_areas;
  for (size_t i = 0; i < points.size(); ++i) {
    (weights.own_cell[i] ? trusted : others).push_back(points[i]);
    if (weights.own_cell[i]) trusted_areas.push_back(weights.areas[i]);
  }
  if (trusted.empty()) {
    std::fill(weights.areas.begin(), weights.areas.end(), 1.0);
    return;
  }
  const auto nearest = KdTree<double>(trusted, num_threads).nearest(others, 1, num_threads);
  auto next = nearest.index.begin();
  for (size_t i = 0; i < points.size(); ++i) {
    if (!weights.own_cell[i]) weights.areas[i] = trusted_areas[static_cast<size_t>(*next++)];
  }
}

}  // namespace

PlanarWeights planar_weights(std::span<const float> lat_rad, std::span<const float> lon_rad,
                             int64_t num_threads) {
  PlanarWeights weights{std::vector<double>(lat_rad.size()), std::vector<uint8_t>(lat_rad.size())};
  if (lat_rad.empty()) return weights;
  const auto points = plane_points(lat_rad, lon_rad);
  const PlanarCells cells(points, num_threads);
  parallel_for(static_cast<int64_t>(points.size()), num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 PlanarCells::Scratch scratch;
                 for (int64_t node = begin; node < end; ++node) {
                   const auto i = static_cast<size_t>(node);
                   weights.areas[i] = cells.trusted_area(node, scratch);
                   weights.own_cell[i] = weights.areas[i] > 0 ? 1 : 0;
                 }
               });
  fill_from_nearest(points, weights, num_threads);
  return weights;
}

std::vector<double> masked_planar_weights(std::span<const float> lat_rad,
                                          std::span<const float> lon_rad,
                                          std::span<const float> mask, int64_t num_threads) {
  AIFS_CHECK(mask.size() == lat_rad.size(), "a mask of ", mask.size(), " values for ",
             lat_rad.size(), " nodes");
  std::vector<float> lat, lon;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    lat.push_back(lat_rad[i]);
    lon.push_back(lon_rad[i]);
  }
  const PlanarWeights selected = planar_weights(lat, lon, num_threads);
  std::vector<double> weights(mask.size(), 0.0);
  auto next = selected.areas.begin();
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) weights[i] = *next++ * static_cast<double>(mask[i]);
  }
  return weights;
}

}  // namespace aifs::graph
