// SPDX-License-Identifier: Apache-2.0
// Which cells of a grid give way to those of a grid laid over a part of it. Pure; as
// anemoi.transform.spatial of the reference does it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace aifs::data {

// Coordinates of cells.
struct Cells {
  std::span<const double> latitudes_deg, longitudes_deg;
  size_t size() const { return latitudes_deg.size(); }
};

struct CutoutOptions {
  double cropping_distance_deg = 2.0;  // around the inner cells, within which outer ones are tested
  int64_t neighbours = 5;              // inner cells that are looked at for each outer one
  // Outer cells that are as close to an inner one are left out; none: the smallest distance of two
  // outer cells near the inner ones.
  std::optional<double> min_distance_km = {};
  std::optional<double> max_distance_km = {};  // outer cells that are further off are left out
};

// True for cells of `outer` that stay. Needs at least `neighbours` inner cells. Takes a minute for
// millions of cells.
std::vector<bool> cells_outside(const Cells& inner, const Cells& outer,
                                const CutoutOptions& options);

// North, west, south and east of a rectangle.
struct Area {
  double north_deg = 90.0, west_deg = 0.0, south_deg = -90.0, east_deg = 360.0;
};
Area bounds_of(const Cells& cells);
// True for cells within; longitudes count modulo 360 degrees.
std::vector<bool> cells_in_area(const Cells& cells, const Area& area);

// True if a cell of one grid is less than a degree away from one of the other, in the plane of
// latitude and longitude.
bool grids_meet(const Cells& one, const Cells& other);

}  // namespace aifs::data
