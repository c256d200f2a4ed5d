// SPDX-License-Identifier: Apache-2.0
// How much of the sphere a node stands for. All results are in double, one value per node, not
// normalised (normalisation.h); coordinates are float32 radians, taken as exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/peers.h"

namespace aifs::graph {

// Areas (steradian) of the spherical Voronoi cells; they add up to 4 pi. The cells of a limited
// area cover the whole sphere, too: outer nodes get what lies outside.
// Throws DataError as require_distinct_nodes() does, or if cells are unbounded: fewer than four
// nodes, or all on one circle.
// With peers, who have all nodes, each computes some of the areas. Collective.
std::vector<double> spherical_area_weights(std::span<const float> lat_rad,
                                           std::span<const float> lon_rad, int64_t num_threads,
                                           Peers* peers = nullptr);

// Throws DataError if nodes are closer than 1e-6 (chord), as those of regular grids with rows at
// the poles or with a meridian at both 0 and 360 degrees. The message names the nodes at each pole,
// and else the first pair.
void require_distinct_nodes(std::span<const float> lat_rad, std::span<const float> lon_rad,
                            int64_t num_threads);

// (max - min) cos(latitude) + min.
std::vector<double> cosine_latitude_weights(std::span<const float> lat_rad, double min = 1e-3,
                                            double max = 1.0);

// Bands between the midpoints of distinct latitudes, shared evenly by the nodes of a latitude:
// 2 pi R (sin upper - sin lower) / nodes, with R = 6371 (one factor only, as in Anemoi).
std::vector<double> isolatitude_weights(std::span<const float> lat_rad);

}  // namespace aifs::graph
