// SPDX-License-Identifier: Apache-2.0
#include "data/combine/cutout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/check.h"
#include "data/combine/nearest_points.h"

namespace aifs::data {

namespace {

constexpr double kEarthRadius_km = 6371.229;
constexpr double kRadian = std::numbers::pi / 180.0;

Point minus(const Point& a, const Point& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Point& a, const Point& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// True if the ray from the centre of the Earth meets a triangle (Moeller and Trumbore 1997).
bool ray_meets(const Point& direction, const Point& v0, const Point& v1, const Point& v2) {
  constexpr double kTiny = 1e-7;
  const Point h = cross(direction, minus(v2, v0));
  const double a = dot(minus(v1, v0), h);
  if (-kTiny < a && a < kTiny) return false;
  const double f = 1.0 / a;
  const Point s = minus({0.0, 0.0, 0.0}, v0);
  const double u = f * dot(s, h);
  if (u < 0.0 || u > 1.0) return false;
  const Point q = cross(s, minus(v1, v0));
  const double v = f * dot(direction, q);
  if (v < 0.0 || u + v > 1.0) return false;
  return f * dot(minus(v2, v0), q) > kTiny;
}

// Smallest distance of two points.
double resolution(const std::vector<Point>& points) {
  const NearestPoints tree(points);
  double least2 = std::numeric_limits<double>::infinity();
  for (const Point& point : points) {
    const auto found = tree.query(point, 2, std::numeric_limits<double>::infinity());
    if (found.size() == 2) least2 = std::min(least2, found[1].distance2);
  }
  return std::sqrt(least2);
}

// True if a cell lies between some of the inner ones around it.
bool is_between(const Point& cell, const std::vector<Point>& inner,
                const std::vector<NearestPoints::Neighbour>& around) {
  const size_t count = around.size();
  const auto at = [&](size_t i) -> const Point& {
    return inner[static_cast<size_t>(around[i % count].index)];
  };
  for (size_t j = 0; j < count; ++j) {
    if (ray_meets(cell, at(j), at(j + 1), at(j + 2))) return true;
  }
  return false;
}

}  // namespace

Area bounds_of(const Cells& cells) {
  const auto [south, north] =
      std::minmax_element(cells.latitudes_deg.begin(), cells.latitudes_deg.end());
  const auto [west, east] =
      std::minmax_element(cells.longitudes_deg.begin(), cells.longitudes_deg.end());
  return {*north, *west, *south, *east};
}

std::vector<bool> cells_in_area(const Cells& cells, const Area& area) {
  std::vector<bool> inside(cells.size());
  for (size_t n = 0; n < inside.size(); ++n) {
    const double latitude = cells.latitudes_deg[n], longitude = cells.longitudes_deg[n];
    const auto between = [&](double shift) {
      return longitude >= area.west_deg + shift && longitude <= area.east_deg + shift;
    };
    inside[n] = latitude >= area.south_deg && latitude <= area.north_deg &&
                (between(0.0) || between(360.0) || between(-360.0));
  }
  return inside;
}

std::vector<bool> cells_outside(const Cells& inner, const Cells& outer,
                                const CutoutOptions& options) {
  const auto neighbours = static_cast<size_t>(options.neighbours);
  AIFS_CHECK(inner.size() >= neighbours, inner.size(), " inner cells for ", neighbours,
             " neighbours");
  Area area = bounds_of(inner);
  double margin_deg = options.cropping_distance_deg;
  if (options.max_distance_km) {
    const double latitude = std::max(std::abs(area.north_deg), std::abs(area.south_deg));
    const double degree_km = kEarthRadius_km * std::cos(latitude * kRadian) * kRadian;
    margin_deg = std::max(margin_deg, 1.1 * *options.max_distance_km / degree_km);
  }
  area = {std::min(90.0, area.north_deg + margin_deg), area.west_deg - margin_deg,
          std::max(-90.0, area.south_deg - margin_deg), area.east_deg + margin_deg};
  const std::vector<bool> is_near = cells_in_area(outer, area);
  std::vector<Point> near;
  const std::vector<Point> all = unit_vectors(outer.latitudes_deg, outer.longitudes_deg);
  for (size_t n = 0; n < all.size(); ++n) {
    if (is_near[n]) near.push_back(all[n]);
  }
  std::vector<bool> stays(outer.size(), !options.max_distance_km.has_value());
  if (near.empty()) return stays;

  const double min_distance =
      options.min_distance_km ? *options.min_distance_km / kEarthRadius_km : resolution(near);
  const std::vector<Point> inner_points = unit_vectors(inner.latitudes_deg, inner.longitudes_deg);
  const NearestPoints tree(inner_points);
  for (size_t n = 0; n < all.size(); ++n) {
    if (!is_near[n]) continue;
    const auto around = tree.query(all[n], neighbours, std::numeric_limits<double>::infinity());
    const double distance = std::sqrt(around.front().distance2);
    const bool is_far =
        options.max_distance_km && distance > *options.max_distance_km / kEarthRadius_km;
    stays[n] = !(distance <= min_distance || is_far || is_between(all[n], inner_points, around));
  }
  return stays;
}

bool grids_meet(const Cells& one, const Cells& other) {
  const auto in_plane = [](const Cells& cells) {
    std::vector<Point> points(cells.size());
    for (size_t n = 0; n < points.size(); ++n)
      points[n] = {cells.latitudes_deg[n], cells.longitudes_deg[n], 0.0};
    return points;
  };
  const NearestPoints tree(in_plane(one));
  for (const Point& point : in_plane(other)) {
    if (!tree.query(point, 1, 1.0).empty()) return true;
  }
  return false;
}

}  // namespace aifs::data
