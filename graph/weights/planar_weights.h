// SPDX-License-Identifier: Apache-2.0
// Voronoi areas in the plane of latitude and longitude (radians, no cosine of latitude), for
// limited areas. Cells at the rim, which would reach far outside, take the area of the nearest cell
// that does not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aifs::graph {

struct PlanarWeights {
  std::vector<double> areas;      // (N)
  std::vector<uint8_t> own_cell;  // (N) 1: the node's own cell, 0: copied
};

// A cell counts as the node's own if it is bounded and all its corners lie within 1.2 times the
// median distance to the neighbours it borders on. If there is no such cell at all (few nodes,
// nodes on a line), every weight is 1. Longitudes are re-centred first, so that the date line may
// cross the area; a global set is cut opposite to the mean longitude.
PlanarWeights planar_weights(std::span<const float> lat_rad, std::span<const float> lon_rad,
                             int64_t num_threads);

// planar_weights() of the nodes with a mask value other than 0 alone, times the mask value; 0 for
// the others.
std::vector<double> masked_planar_weights(std::span<const float> lat_rad,
                                          std::span<const float> lon_rad,
                                          std::span<const float> mask, int64_t num_threads);

}  // namespace aifs::graph
