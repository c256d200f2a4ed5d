// SPDX-License-Identifier: Apache-2.0
#include "conformance/spectral_plane.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace aifs::conformance {

namespace {

// Patches of `size` that begin `stride` points apart until they cover `length`.
int64_t num_patches(int64_t length, int64_t size, int64_t stride) {
  return length <= size ? 1 : 1 + (length - size + stride - 1) / stride;
}

// Strides that give `count` patches, the likely ones first: side by side, evenly over the length.
std::vector<int64_t> strides(int64_t length, int64_t size, int64_t count) {
  if (count == 1) return length <= size ? std::vector<int64_t>{size} : std::vector<int64_t>{};
  std::vector<int64_t> found;
  const auto add = [&](int64_t stride) {
    const bool fits = stride > 0 && num_patches(length, size, stride) == count;
    if (fits && std::find(found.begin(), found.end(), stride) == found.end())
      found.push_back(stride);
  };
  add(size);
  if (length > size && (length - size) % (count - 1) == 0) add((length - size) / (count - 1));
  for (int64_t stride = 1; stride <= size; ++stride)  // wider ones would leave points out
    add(stride);
  return found;
}

bool is_padded(const PatchedPlane& plane, Extent size, Extent count) {
  return (count.y - 1) * plane.stride.y + size.y != plane.plane.y ||
         (count.x - 1) * plane.stride.x + size.x != plane.plane.x;
}

}  // namespace

std::vector<PatchedPlane> planes_of_patches(int64_t points, Extent size, Extent count) {
  std::vector<PatchedPlane> planes;
  for (int64_t y = 1; y <= points; ++y) {
    if (points % y != 0) continue;
    const Extent plane{y, points / y};
    for (const int64_t stride_y : strides(plane.y, size.y, count.y)) {
      for (const int64_t stride_x : strides(plane.x, size.x, count.x))
        planes.push_back({plane, {stride_y, stride_x}});
    }
  }
  std::stable_sort(planes.begin(), planes.end(), [&](const auto& a, const auto& b) {
    const auto rank = [&](const PatchedPlane& p) {
      return std::tuple(is_padded(p, size, count), std::abs(p.plane.y - p.plane.x));
    };
    return rank(a) < rank(b);
  });
  return planes;
}

}  // namespace aifs::conformance
