// SPDX-License-Identifier: Apache-2.0
// Which rectangle a spectral transform cuts into patches, and how. Cases give shapes only: the
// number of points, and for patches their size and number.
#pragma once

#include <cstdint>
#include <vector>

namespace aifs::conformance {

// Points along y and x, or other pairs of numbers of the two directions.
struct Extent {
  int64_t y = 0, x = 0;
  bool operator==(const Extent&) const = default;
};

struct PatchedPlane {
  Extent plane, stride;
  bool operator==(const PatchedPlane&) const = default;
};

// All planes of `points` that give `count` patches of `size`, with every stride that the package
// allows: patches side by side, the last ones over the end, or overlapping evenly. Planes that need
// no padding come first, then those nearest to a square.
std::vector<PatchedPlane> planes_of_patches(int64_t points, Extent size, Extent count);

}  // namespace aifs::conformance
