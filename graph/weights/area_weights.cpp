// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/area_weights.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "core/check.h"
#include "core/shares.h"
#include "graph/base/parallel_for.h"
#include "graph/base/sphere_search.h"
#include "graph/weights/convex_cell.h"

namespace aifs::graph {

namespace {

using Vector = Point<double>;

constexpr double kLeastDistance = 1e-6;  // chord; closer nodes are duplicates

constexpr const char* kWithoutCells =
    "set graph.area_weight.kind to \"cosine_latitude\", \"isolatitude\" or \"uniform\", which need "
    "no cells";

// Ends the loop over cells; what is wrong is found out afterwards.
struct SamePlace {};

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
  SphericalCells(std::span<const float> lat_rad, std::span<const float> lon_rad,
                 int64_t num_threads)
      : lat_rad_(lat_rad),
        lon_rad_(lon_rad),
        num_threads_(num_threads),
        points_(unit_vectors<double>(lat_rad, lon_rad, num_threads)),
        search_(lat_rad, lon_rad, {}, num_threads) {}

  struct Scratch {
    ConvexCell cell;
    std::vector<Neighbour> found;
    double reach2 = 0.0;  // of the cell before
  };

  double area(int64_t node, Scratch& scratch) const {
    const Vector& p = points_[static_cast<size_t>(node)];
    ConvexCell& cell = scratch.cell;
    const TangentPlane plane(p);
    cell.reset(kHalfWidth);
    const auto cut = [&](const Neighbour& neighbour) {
      if (neighbour.index != node) {
        if (neighbour.distance2 < kLeastDistance * kLeastDistance) throw SamePlace();
        const Vector d = difference(points_[static_cast<size_t>(neighbour.index)], p);
        cell.cut(dot(d, plane.e1), dot(d, plane.e2), neighbour.distance2 / 2, neighbour.index);
      }
      // A point can cut only if it is nearer than twice the angle of the farthest vertex.
      const double radius2 = cell.radius2();
      return 4 * radius2 / (1 + radius2);
    };
    if (!search_.bands() || !cut_by_bands(node, scratch, cut)) {
      cell.reset(kHalfWidth);
      cut_by_neighbours(tree(), p, scratch.found, cut);
    }
    return cell.touches_border() ? area_of_large_cell(node, scratch) : area_around(cell);
  }

 private:
  // False if the cell is not complete.
  template <class Cut>
  bool cut_by_bands(int64_t node, Scratch& scratch, const Cut& cut) const {
    const auto n = static_cast<size_t>(node);
    const SpherePlace<double> place{lat_rad_[n], lon_rad_[n], points_[n]};
    const auto within = [&](double distance2, std::vector<Neighbour>& found) {
      search_.bands()->within(place, distance2, found);
    };
    const auto num_points = static_cast<double>(points_.size());
    const double first2 = scratch.reach2 > 0 ? 1.02 * scratch.reach2 : 4.0 * kFew / num_points;
    const auto reach2 = cut_by_few(search_.num_points(), first2, within, scratch.found, cut);
    scratch.reach2 = reach2.value_or(0.0);
    return reach2.has_value();
  }

  // For cells that many points make: those of outer nodes of an area, and of rows near poles. The
  // order in which it finds far points is part of their bits.
  const KdTree<double>& tree() const {
    if (search_.tree()) return *search_.tree();
    std::call_once(tree_made_, [&] { tree_.emplace(points_, num_threads_); });
    return *tree_;
  }

  // Up to 89.99 degrees from the node; cells that reach farther are treated as large.
  static constexpr double kHalfWidth = 1e4;

  // The cell lies around its node in the tangent plane: no cancellation, however small it is.
  static double area_around(const ConvexCell& cell) {
    const auto length = [](const ConvexCell::Vertex& v) {
      return std::sqrt(1 + v.u * v.u + v.v * v.v);
    };
    double area = 0.0;
    const auto& vertices = cell.vertices();
    const double first = vertices.empty() ? 0.0 : length(vertices.front());
    double length_a = first;
    for (size_t i = 0; i < vertices.size(); ++i) {
      const bool last = i + 1 == vertices.size();
      const auto &a = vertices[i], &b = vertices[last ? 0 : i + 1];
      const double length_b = last ? first : length(b);
      area += 2 * std::atan2(a.u * b.v - a.v * b.u,
                             length_a * length_b + length_a + length_b + 1 + a.u * b.u + a.v * b.v);
      length_a = length_b;
    }
    return area;
  }

  // A cell that is no part of the hemisphere around its node: outer nodes of a limited area. It is
  // the cone x . (p - q) >= 0 for all q; the sum of the normals p - q lies in the dual cone, so
  // that the cone is on its side of the sphere.
  double area_of_large_cell(int64_t node, Scratch& scratch) const {
    const Vector& p = points_[static_cast<size_t>(node)];
    Vector sum{0, 0, 0};
    for (int64_t other = 0; other < search_.num_points(); ++other) {
      if (other == node) continue;
      const Vector normal = normalised(difference(p, points_[static_cast<size_t>(other)]));
      sum = {sum[0] + normal[0], sum[1] + normal[1], sum[2] + normal[2]};
    }
    const TangentPlane plane(normalised(sum));
    ConvexCell& cell = scratch.cell;
    cell.reset(1e7);
    for (int64_t other = 0; other < search_.num_points(); ++other) {
      if (other == node) continue;
      const Vector d = difference(points_[static_cast<size_t>(other)], p);
      cell.cut(dot(d, plane.e1), dot(d, plane.e2), -dot(d, plane.centre),
               static_cast<int32_t>(other));
    }
    if (cell.vertices().empty() || cell.touches_border()) {
      throw DataError(concat("the Voronoi cell of node ", node, " has no bounds: the ",
                             search_.num_points(), " nodes are too few, or all on one circle"),
                      kWithoutCells);
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

  std::span<const float> lat_rad_, lon_rad_;
  int64_t num_threads_;
  std::vector<Vector> points_;
  SphereSearch<double> search_;
  mutable std::once_flag tree_made_;
  mutable std::optional<KdTree<double>> tree_;
};

// "nodes 0 to 71, 90", the first few ranges of ascending numbers.
std::string ranges_of(const std::vector<int64_t>& nodes) {
  constexpr int kMost = 3;
  std::string text;
  int num_ranges = 0;
  for (size_t i = 0, end = 0; i < nodes.size(); i = end) {
    while (end < nodes.size() && nodes[end] == nodes[i] + static_cast<int64_t>(end - i))
      ++end;
    if (++num_ranges > kMost) return text + ", ...";
    text += concat(i == 0 ? "nodes " : ", ", nodes[i]);
    if (end - i > 1) text += concat(" to ", nodes[end - 1]);
  }
  return text;
}

// "72 nodes are at latitude 90 (nodes 0 to 71)" for each pole with several nodes; else nothing.
std::string nodes_at_poles(const std::vector<Vector>& points) {
  std::string text;
  for (const double pole : {1.0, -1.0}) {
    std::vector<int64_t> there;
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::hypot(points[i][0], points[i][1]) < kLeastDistance && pole * points[i][2] > 0)
        there.push_back(static_cast<int64_t>(i));
    }
    if (there.size() < 2) continue;
    text += concat(text.empty() ? "" : " and ", there.size(), text.empty() ? " nodes are" : "",
                   " at latitude ", 90 * pole, " (", ranges_of(there), ")");
  }
  return text;
}

double rounded_degrees(double radians) {
  return std::round(radians * 180 / kPi * 1e4) / 1e4;
}

// "nodes 12 and 37 are at the same place (...)" for the first such pair away from the poles; else
// nothing.
std::string first_pair(std::span<const float> lat_rad, std::span<const float> lon_rad,
                       const std::vector<Vector>& points, int64_t threads) {
  const SphereSearch<double> search(lat_rad, lon_rad, {}, threads);
  std::vector<int32_t> partner(points.size(), -1);  // the first other node at the same place
  parallel_for(search.num_points(), threads, [&](int64_t, int64_t begin, int64_t end) {
    std::vector<Neighbour> found;
    for (int64_t i = begin; i < end; ++i) {
      const auto n = static_cast<size_t>(i);
      const Vector& p = points[n];
      if (std::hypot(p[0], p[1]) < kLeastDistance) continue;
      search.within({lat_rad[n], lon_rad[n], p}, kLeastDistance * kLeastDistance, found);
      int32_t& first = partner[static_cast<size_t>(i)];
      for (const Neighbour& neighbour : found) {
        if (neighbour.index != i && (first < 0 || neighbour.index < first)) first = neighbour.index;
      }
    }
  });
  const auto is_shared = [](int32_t other) { return other >= 0; };
  const auto found = std::find_if(partner.begin(), partner.end(), is_shared);
  if (found == partner.end()) return "";
  const Vector& p = points[static_cast<size_t>(found - partner.begin())];
  const auto num_shared = std::count_if(partner.begin(), partner.end(), is_shared);
  return concat("nodes ", found - partner.begin(), " and ", *found,
                " are at the same place (latitude ", rounded_degrees(std::asin(p[2])),
                ", longitude ", rounded_degrees(std::atan2(p[1], p[0])), ")",
                num_shared > 2 ? concat(", ", num_shared, " nodes share theirs with others") : "");
}

}  // namespace

void require_distinct_nodes(std::span<const float> lat_rad, std::span<const float> lon_rad,
                            int64_t num_threads) {
  const std::vector<Vector> points = unit_vectors<double>(lat_rad, lon_rad, num_threads);
  const std::string poles = nodes_at_poles(points),
                    pair = first_pair(lat_rad, lon_rad, points, num_threads);
  if (poles.empty() && pair.empty()) return;
  throw DataError(concat(poles, poles.empty() || pair.empty() ? "" : "; ", pair,
                         ": they have no Voronoi cell of their own on the sphere"),
                  kWithoutCells);
}

namespace {

// The areas of nodes first, ..., first + count - 1.
std::vector<double> areas_of(const SphericalCells& cells, int64_t first, int64_t count,
                             int64_t num_threads) {
  std::vector<double> areas(static_cast<size_t>(count));
  parallel_for(count, num_threads, [&](int64_t, int64_t begin, int64_t end) {
    SphericalCells::Scratch scratch;
    for (int64_t i = begin; i < end; ++i)
      areas[static_cast<size_t>(i)] = cells.area(first + i, scratch);
  });
  return areas;
}

// Those that each peer has computed, on every one; if one cannot, all throw.
std::vector<double> divided_areas(const SphericalCells& cells, int64_t num_nodes,
                                  int64_t num_threads, Peers& peers) {
  const std::vector<int64_t> starts = starts_of(balanced_counts(num_nodes, peers.size()));
  const auto rank = static_cast<size_t>(peers.rank());
  std::vector<double> own;
  std::exception_ptr error;
  try {
    own = areas_of(cells, starts[rank], starts[rank + 1] - starts[rank], num_threads);
  } catch (...) {
    error = std::current_exception();
  }
  const int64_t failures = sum_over(peers, error ? 1 : 0);
  if (error) std::rethrow_exception(error);
  if (failures > 0) throw SamePlace();
  return gather(peers, own).values;
}

}  // namespace

std::vector<double> spherical_area_weights(std::span<const float> lat_rad,
                                           std::span<const float> lon_rad, int64_t num_threads,
                                           Peers* peers) {
  const SphericalCells cells(lat_rad, lon_rad, num_threads);
  const auto num_nodes = static_cast<int64_t>(lat_rad.size());
  try {
    return peers ? divided_areas(cells, num_nodes, num_threads, *peers)
                 : areas_of(cells, 0, num_nodes, num_threads);
  } catch (const SamePlace&) {
    require_distinct_nodes(lat_rad, lon_rad, num_threads);
    throw DataError("the Voronoi cells of some nodes have no bounds", kWithoutCells);
  }
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
