// SPDX-License-Identifier: Apache-2.0
// HEALPix pixels in nested order as nodes, and the edges to their eight neighbours (Gorski et al.
// 2005, ApJ 622; section 4.1 for the numbering). Resolution r has 12 * 4^r pixels.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/edge_list.h"
#include "graph/base/geometry.h"

namespace aifs::graph {

// 12 * 4^13 pixels still fit 32-bit indices.
constexpr int64_t kMaxHealpixResolution = 13;

constexpr int64_t healpix_pixels(int64_t resolution) {
  return 12 * (int64_t{1} << (2 * resolution));
}

// Pixel centres; longitudes in [0, 360). Throws Error unless 1 <= resolution <=
// kMaxHealpixResolution.
Coordinates healpix_coordinates(int64_t resolution);

// For every level, coarse to fine, edges from each pixel to its neighbours in the order SW, W, NW,
// N, NE, E, SE, S. Pixels of a coarse level stand for their first descendant on the finest level
// given: numbers are 4^(finest - level) times the pixel's own. 24 pixels per level have only seven
// neighbours: the missing one is the negative number -4^(finest - level), as in Anemoi.
// Throws Error for an empty list or a level outside 1 ... kMaxHealpixResolution.
EdgeList healpix_multi_scale_edges(std::vector<int64_t> levels);

}  // namespace aifs::graph
