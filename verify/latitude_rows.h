// SPDX-License-Identifier: Apache-2.0
// Grids whose cells lie on circles of latitude, equally spaced around each: regular and reduced
// ones, Gaussian or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace aifs::verify {

struct LatitudeRows {
  std::vector<double> latitudes_deg;         // (rows) in the order of the cells
  std::vector<double> first_longitudes_deg;  // (rows) of the first cell
  std::vector<int64_t> begin;                // (rows + 1) first cell of each; then their number

  int64_t num_rows() const { return static_cast<int64_t>(latitudes_deg.size()); }
  int64_t length(int64_t row) const {
    return begin[static_cast<size_t>(row) + 1] - begin[static_cast<size_t>(row)];
  }
};

// The rows of cells that run eastwards around the globe; nothing if a row is no whole circle of two
// cells or more at equal distances (to a thousandth of the distance), or if there is one row only.
std::optional<LatitudeRows> latitude_rows(std::span<const double> latitudes_deg,
                                          std::span<const double> longitudes_deg);

// The exact latitudes of Gaussian rows, and weights by which sums over rows become integrals over
// the sine of latitude; these add up to 2.
struct GaussianRows {
  std::vector<double> latitudes_deg, weights;  // (rows)
};

// Nothing if the rows, from north to south or back, are not those of a Gaussian grid (within 0.001
// degrees, as files round them).
std::optional<GaussianRows> gaussian_rows(const LatitudeRows& rows);

}  // namespace aifs::verify
