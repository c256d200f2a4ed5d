// SPDX-License-Identifier: Apache-2.0
#include "graph/area_weights.h"

#include <cmath>
#include <map>

#include "core/check.h"
#include "graph/convex_cell.h"
#include "graph/parallel_for.h"

namespace aifs::graph {

namespace {

using Vector = Point<double>;

constexpr double kLeastDistance = 1e-6;  // chord; closer nodes are duplicates

double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vector difference(const Vector& a, const Vector& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Vector normalised(const Vector& a) {
  const double length = std::sqrt(dot(a, a));
  return {a[0] / length, a[1] / length, a[2] / length};
}

// The plane that touches the sphere at `centre`; (u, v) stands for the direction
// centre + u e1 + v e2 (gnomonic projection: great circles are straight lines).
struct TangentPlane {
  Vector centre, e1, e2;

  explicit TangentPlane(const Vector& point) : centre(point) {
    const bool near_z_axis = std::abs(point[2]) > 0.9;
    e1 = normalised(cross(near_z_axis ? Vector{1, 0, 0} : Vector{0, 0, 1}, point));
    e2 = cross(point, e1);
  }
  Vector direction(double u, double v) const {
    return {centre[0] + u * e1[0] + v * e2[0], centre[1] + u * e1[1] + v * e2[1],
            centre[2] + u * e1[2] + v * e2[2]};
  }
};

// Solid angle of the triangle of unit vectors a, b, c.
double solid_angle(const Vector& a, const Vector& b, const Vector& c) {
  return 2 * std::abs(std::atan2(dot(a, cross(b, c)), 1 + dot(a, b) + dot(b, c) + dot(c, a)));
}

class SphericalCells {
 public:
  SphericalCells(std::vector<Vector> points, int64_t num_threads)
      : points_(std::move(points)), tree_(points_, num_threads) {}

  struct Scratch {
    ConvexCell cell;
    std::vector<Neighbour> found;
  };

  double area(int64_t node, Scratch& scratch) const {
    const Vector& p = points_[static_cast<size_t>(node)];
    ConvexCell& cell = scratch.cell;
    const TangentPlane plane(p);
    cell.reset(kHalfWidth);
    cut_by_neighbours(tree_, p, scratch.found, [&](const Neighbour& neighbour) {
      if (neighbour.index != node) {
        check_distance(node, neighbour);
        const Vector d = difference(points_[static_cast<size_t>(neighbour.index)], p);
        cell.cut(dot(d, plane.e1), dot(d, plane.e2), neighbour.distance2 / 2, neighbour.index);
      }
      // A point can cut only if it is nearer than twice the angle of the farthest vertex.
      const double radius2 = cell.radius2();
      return 4 * radius2 / (1 + radius2);
    });
    return cell.touches_border() ? area_of_large_cell(node, scratch) : area_around(cell);
  }

 private:
  // Up to 89.99 degrees from the node; cells that reach farther are treated as large.
  static constexpr double kHalfWidth = 1e4;

  void check_distance(int64_t node, const Neighbour& neighbour) const {
    if (neighbour.distance2 >= kLeastDistance * kLeastDistance) return;
    throw DataError(
        concat("nodes ", std::min<int64_t>(node, neighbour.index), " and ",
               std::max<int64_t>(node, neighbour.index), " are at the same place (distance ",
               std::sqrt(neighbour.distance2), " on the unit sphere)"),
        "remove one of them, or choose an area weight that needs no cells");
  }

  // The cell lies around its node in the tangent plane: no cancellation, however small it is.
  static double area_around(const ConvexCell& cell) {
    double area = 0.0;
    const auto& vertices = cell.vertices();
    for (size_t i = 0; i < vertices.size(); ++i) {
      const auto& a = vertices[i];
      const auto& b = vertices[i + 1 == vertices.size() ? 0 : i + 1];
      const double length_a = std::sqrt(1 + a.u * a.u + a.v * a.v);
      const double length_b = std::sqrt(1 + b.u * b.u + b.v * b.v);
      area += 2 * std::atan2(a.u * b.v - a.v * b.u,
                             length_a * length_b + length_a + length_b + 1 + a.u * b.u + a.v * b.v);
    }
    return area;
  }

  // A cell that is no part of the hemisphere around its node: outer nodes of a limited area. It is
  // the cone x . (p - q) >= 0 for all q; the sum of the normals p - q lies in the dual cone, so
  // that the cone is on its side of the sphere.
  double area_of_large_cell(int64_t node, Scratch& scratch) const {
    const Vector& p = points_[static_cast<size_t>(node)];
    Vector sum{0, 0, 0};
    for (int64_t other = 0; other < tree_.num_points(); ++other) {
      if (other == node) continue;
      const Vector normal = normalised(difference(p, points_[static_cast<size_t>(other)]));
      sum = {sum[0] + normal[0], sum[1] + normal[1], sum[2] + normal[2]};
    }
    const TangentPlane plane(normalised(sum));
    ConvexCell& cell = scratch.cell;
    cell.reset(1e7);
    for (int64_t other = 0; other < tree_.num_points(); ++other) {
      if (other == node) continue;
      const Vector d = difference(points_[static_cast<size_t>(other)], p);
      cell.cut(dot(d, plane.e1), dot(d, plane.e2), -dot(d, plane.centre),
               static_cast<int32_t>(other));
    }
    if (cell.vertices().empty() || cell.touches_border()) {
      throw Error(concat("the Voronoi cell of node ", node, " has no bounds: the ",
                         tree_.num_points(), " nodes are too few, or all on one circle"),
                  "choose an area weight that needs no cells");
    }
    double area = 0.0;
    const auto& vertices = cell.vertices();
    for (size_t i = 0; i < vertices.size(); ++i) {
      const auto& a = vertices[i];
      const auto& b = vertices[i + 1 == vertices.size() ? 0 : i + 1];
      area += solid_angle(p, normalised(plane.direction(a.u, a.v)),
                          normalised(plane.direction(b.u, b.v)));
    }
    return area;
  }

  std::vector<Vector> points_;
  KdTree<double> tree_;
};

}  // namespace

std::vector<double> spherical_area_weights(std::span<const float> lat_rad,
                                           std::span<const float> lon_rad, int64_t num_threads) {
  const SphericalCells cells(unit_vectors<double>(lat_rad, lon_rad), num_threads);
  std::vector<double> areas(lat_rad.size());
  parallel_for(static_cast<int64_t>(areas.size()), num_threads,
               [&](int64_t, int64_t begin, int64_t end) {
                 SphericalCells::Scratch scratch;
                 for (int64_t node = begin; node < end; ++node)
                   areas[static_cast<size_t>(node)] = cells.area(node, scratch);
               });
  return areas;
}

std::vector<double> cosine_latitude_weights(std::span<const float> lat_rad, double min,
                                            double max) {
  std::vector<double> weights;
  weights.reserve(lat_rad.size());
  for (const float lat : lat_rad)
    weights.push_back((max - min) * std::cos(static_cast<double>(lat)) + min);
  return weights;
}

std::vector<double> isolatitude_weights(std::span<const float> lat_rad) {
  std::map<double, int64_t> nodes_at;
  for (const float lat : lat_rad)
    ++nodes_at[lat];
  std::map<double, double> weight_at;
  double lower = -kPi / 2;
  for (auto it = nodes_at.begin(); it != nodes_at.end(); ++it) {
    const auto next = std::next(it);
    const double upper = next == nodes_at.end() ? kPi / 2 : (it->first + next->first) / 2;
    weight_at[it->first] = 2 * kPi * kEarthRadius_km * (std::sin(upper) - std::sin(lower)) /
                           static_cast<double>(it->second);
    lower = upper;
  }
  std::vector<double> weights;
  weights.reserve(lat_rad.size());
  for (const float lat : lat_rad)
    weights.push_back(weight_at.at(lat));
  return weights;
}

}  // namespace aifs::graph
