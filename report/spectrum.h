// SPDX-License-Identifier: Apache-2.0
// Power of a field by zonal wavenumber: of every circle of latitude in a band by its own Fourier
// transform, averaged over the circles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace aifs::report {

// Cells that follow each other on one circle of latitude, evenly spread.
struct LatitudeCircle {
  size_t first = 0, count = 0;
};

// The circles with |latitude| from `south_deg` to `north_deg`, of both hemispheres. Empty for grids
// that have none (icospheres, limited areas), as far as cells of a circle follow each other.
std::vector<LatitudeCircle> latitude_circles(std::span<const double> latitudes_deg,
                                             std::span<const double> longitudes_deg,
                                             double south_deg, double north_deg);

// Mean power at wavenumbers 1, 2, ...: half the squared amplitude, in squared units of the field,
// so that the sum over all wavenumbers is the variance along a circle. As many as the shortest
// circle resolves, `most` at most. Circles with NaN do not count; empty if none is left.
std::vector<double> zonal_spectrum(std::span<const float> field,
                                   std::span<const LatitudeCircle> circles, size_t most);

}  // namespace aifs::report
