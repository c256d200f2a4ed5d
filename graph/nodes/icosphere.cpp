// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/icosphere.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"

namespace aifs::graph {

namespace {

std::vector<Point<double>> icosahedron_points() {
  const double t = (1 + std::sqrt(5.0)) / 2;
  const double s = std::sqrt(2 + t);
  std::vector<Point<double>> points{{-1, t, 0}, {1, t, 0}, {-1, -t, 0}, {1, -t, 0},
                                    {0, -1, t}, {0, 1, t}, {0, -1, -t}, {0, 1, -t},
                                    {t, 0, -1}, {t, 0, 1}, {-t, 0, -1}, {-t, 0, 1}};
  for (auto& point : points) {
    for (double& x : point)
      x /= s;
  }
  return points;
}

// The undirected edges of a level, numbered by (larger end, smaller end) ascending.
class EdgeNumbers {
 public:
  EdgeNumbers(const Faces& faces, int64_t num_vertices)
      : begin_(static_cast<size_t>(num_vertices) + 1, 0), smaller_(faces.size() * 3 / 2) {
    for_each_edge(faces, [&](int32_t, int32_t large) { ++begin_[static_cast<size_t>(large) + 1]; });
    for (size_t v = 1; v < begin_.size(); ++v)
      begin_[v] += begin_[v - 1];
    std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
    for_each_edge(faces, [&](int32_t small, int32_t large) {
      smaller_[static_cast<size_t>(next[static_cast<size_t>(large)]++)] = small;
    });
    for (size_t v = 0; v + 1 < begin_.size(); ++v)
      std::sort(smaller_.begin() + begin_[v], smaller_.begin() + begin_[v + 1]);
  }

  int32_t number(int32_t a, int32_t b) const {
    const int32_t small = std::min(a, b);
    int32_t edge = begin_[static_cast<size_t>(std::max(a, b))];
    while (smaller_[static_cast<size_t>(edge)] != small)
      ++edge;
    return edge;
  }

  template <class Body>  // body(small, large), in the order of the numbers
  void for_each(const Body& body) const {
    for (size_t large = 0; large + 1 < begin_.size(); ++large) {
      for (int32_t e = begin_[large]; e < begin_[large + 1]; ++e)
        body(smaller_[static_cast<size_t>(e)], static_cast<int32_t>(large));
    }
  }

 private:
  // Every edge is passed once in each direction; the ascending one counts.
  template <class Body>
  static void for_each_edge(const Faces& faces, const Body& body) {
    for (const auto& face : faces) {
      for (size_t i = 0; i < 3; ++i) {
        const int32_t a = face[i], b = face[(i + 1) % 3];
        if (a < b) body(a, b);
      }
    }
  }

  std::vector<int32_t> begin_, smaller_;
};

Faces refined_faces(const Faces& faces, const EdgeNumbers& edges, int64_t num_vertices) {
  Faces fine;
  fine.reserve(4 * faces.size());
  const auto midpoint = [&](int32_t a, int32_t b) {
    return static_cast<int32_t>(num_vertices) + edges.number(a, b);
  };
  for (const auto& [a, b, c] : faces) {
    const int32_t ab = midpoint(a, b), bc = midpoint(b, c), ca = midpoint(c, a);
    fine.push_back({a, ab, ca});
    fine.push_back({ab, b, bc});
    fine.push_back({ca, bc, c});
    fine.push_back({ab, bc, ca});
  }
  return fine;
}

// All vertices, old ones too: the rounding of repeated projections is part of the coordinates.
void push_to_sphere(std::vector<Point<double>>& points) {
  for (auto& p : points) {
    const double radius = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    for (double& x : p)
      x += (x / radius) * (1 - radius);
  }
}

// Orders like the number, as an unsigned integer; -0 equals +0.
uint32_t sortable(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);
  return (bits & 0x80000000U) ? ~bits : bits | 0x80000000U;
}

}  // namespace

Faces icosahedron_faces() {
  return {{0, 11, 5},  {0, 5, 1},  {0, 1, 7},  {0, 7, 10}, {0, 10, 11}, {1, 5, 9}, {5, 11, 4},
          {11, 10, 2}, {10, 7, 6}, {7, 1, 8},  {3, 9, 4},  {3, 4, 2},   {3, 2, 6}, {3, 6, 8},
          {3, 8, 9},   {4, 9, 5},  {2, 4, 11}, {6, 2, 10}, {8, 6, 7},   {9, 8, 1}};
}

Faces refine_faces(const Faces& faces, int64_t num_vertices) {
  return refined_faces(faces, EdgeNumbers(faces, num_vertices), num_vertices);
}

std::vector<Point<double>> icosphere_points(int64_t level) {
  AIFS_CHECK(level >= 0 && level <= kMaxRefinement, "refinement ", level, " is not in 0 ... ",
             kMaxRefinement);
  std::vector<Point<double>> points = icosahedron_points();
  if (level == 0) push_to_sphere(points);
  points.reserve(static_cast<size_t>(icosphere_vertices(level)));
  Faces faces = icosahedron_faces();
  for (int64_t r = 0; r < level; ++r) {
    const auto num_vertices = static_cast<int64_t>(points.size());
    const EdgeNumbers edges(faces, num_vertices);
    edges.for_each([&](int32_t small, int32_t large) {
      const Point<double>&a = points[static_cast<size_t>(small)],
            &b = points[static_cast<size_t>(large)];
      points.push_back({(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2});
    });
    if (r + 1 < level) faces = refined_faces(faces, edges, num_vertices);
    push_to_sphere(points);
  }
  return points;
}

void icosphere_coordinates(const std::vector<Point<double>>& points, std::vector<float>& lat_rad,
                           std::vector<float>& lon_rad) {
  lat_rad.resize(points.size());
  lon_rad.resize(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y, z] = points[i];
    const double sine = z / (x * x + y * y + z * z);
    lat_rad[i] = static_cast<float>(std::asin(std::clamp(sine, -1.0, 1.0)));
    lon_rad[i] = static_cast<float>(std::atan2(y, x));
  }
}

std::vector<int32_t> canonical_order(const std::vector<float>& lat_rad,
                                     const std::vector<float>& lon_rad) {
  struct Entry {
    uint64_t key;
    int32_t vertex;
  };
  std::vector<Entry> entries(lat_rad.size());
  for (size_t v = 0; v < entries.size(); ++v) {
    const uint64_t key = (static_cast<uint64_t>(sortable(lat_rad[v])) << 32) | sortable(lon_rad[v]);
    entries[v] = {key, static_cast<int32_t>(v)};
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.key > b.key || (a.key == b.key && a.vertex > b.vertex);
  });
  std::vector<int32_t> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries)
    order.push_back(entry.vertex);
  return order;
}

}  // namespace aifs::graph
