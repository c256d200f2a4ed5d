// SPDX-License-Identifier: Apache-2.0
#include "report/map_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

namespace aifs::report {

namespace {

constexpr double kRadians = std::numbers::pi / 180.0;

// Cells of about equal area: rows of latitude, each divided evenly.
class EqualAreaCells {
 public:
  explicit EqualAreaCells(double num_cells)
      : height_rad_(std::sqrt(4.0 * std::numbers::pi / num_cells)) {}

  // The number of a point's cell, and how far the point is from its centre, in radians squared.
  std::pair<int64_t, double> of(double latitude_deg, double longitude_deg) const {
    const double lat = latitude_deg * kRadians + 0.5 * std::numbers::pi;
    const double lon = std::fmod(longitude_deg * kRadians, 2.0 * std::numbers::pi) +
                       (longitude_deg < 0.0 ? 2.0 * std::numbers::pi : 0.0);
    const double row = std::floor(lat / height_rad_);
    const double centre = (row + 0.5) * height_rad_;
    const double cosine = std::max(0.0, std::sin(centre));
    const double columns = std::max(1.0, std::round(2.0 * std::numbers::pi * cosine / height_rad_));
    const double width = 2.0 * std::numbers::pi / columns;
    const double column = std::min(columns - 1.0, std::floor(lon / width));
    const double north = lat - centre, east = (lon - (column + 0.5) * width) * cosine;
    constexpr int64_t kRow = int64_t{1} << 31;
    return {static_cast<int64_t>(row) * kRow + static_cast<int64_t>(column),
            north * north + east * east};
  }

 private:
  double height_rad_;
};

std::vector<int64_t> nearest_to_centres(std::span<const double> latitudes_deg,
                                        std::span<const double> longitudes_deg, double num_cells) {
  const EqualAreaCells cells(num_cells);
  std::unordered_map<int64_t, std::pair<double, int64_t>> nearest;
  for (size_t i = 0; i < latitudes_deg.size(); ++i) {
    const auto [cell, distance] = cells.of(latitudes_deg[i], longitudes_deg[i]);
    const auto [entry, is_new] = nearest.try_emplace(cell, distance, static_cast<int64_t>(i));
    if (!is_new && distance < entry->second.first)
      entry->second = {distance, static_cast<int64_t>(i)};
  }
  std::vector<int64_t> points;
  for (const auto& [cell, point] : nearest)
    points.push_back(point.second);
  std::sort(points.begin(), points.end());
  return points;
}

}  // namespace

std::vector<int64_t> even_points(std::span<const double> latitudes_deg,
                                 std::span<const double> longitudes_deg, int64_t most) {
  const auto count = static_cast<int64_t>(latitudes_deg.size());
  if (count <= most) {
    std::vector<int64_t> all(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      all[static_cast<size_t>(i)] = i;
    return all;
  }
  // A limited area has few of the cells of the globe: they are made smaller until it has too many.
  auto num_cells = static_cast<double>(std::max<int64_t>(1, most));
  std::vector<int64_t> best = nearest_to_centres(latitudes_deg, longitudes_deg, num_cells);
  for (; static_cast<int64_t>(best.size()) > most; num_cells *= 0.9)
    best = nearest_to_centres(latitudes_deg, longitudes_deg, 0.9 * num_cells);
  for (int trial = 0; trial < 40; ++trial) {
    num_cells *= 1.3;
    std::vector<int64_t> more = nearest_to_centres(latitudes_deg, longitudes_deg, num_cells);
    if (static_cast<int64_t>(more.size()) > most) break;
    best = std::move(more);
  }
  return best;
}

CodedField coded(std::span<const float> field, std::span<const int64_t> points) {
  CodedField result{
      std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), {}};
  for (const int64_t point : points) {
    const auto value = static_cast<double>(field[static_cast<size_t>(point)]);
    if (!std::isfinite(value)) continue;
    result.low = std::min(result.low, value);
    result.high = std::max(result.high, value);
  }
  if (result.low > result.high) result.low = result.high = 0.0;
  const double range = result.high - result.low;
  for (const int64_t point : points) {
    const auto value = static_cast<double>(field[static_cast<size_t>(point)]);
    const double share = range > 0.0 ? (value - result.low) / range : 0.5;
    const auto code = std::isfinite(value) ? 1 + std::lround(254.0 * share) : 0;
    result.codes += static_cast<char>(static_cast<uint8_t>(code));
  }
  return result;
}

}  // namespace aifs::report
