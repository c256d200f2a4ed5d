// SPDX-License-Identifier: Apache-2.0
// Numbers that describe edges. Coordinates are the float32 radians of the nodes; everything is
// computed from them in double and rounded to `Real` (float or double) at the end. Results are
// row-major (M, width), not yet normalised (normalisation.h).
//
// Trap: a node at the south pole has latitude float32(-pi/2), which lies beyond the pole, so that
// its cosine is negative and directions at it come out turned by 180 degrees. Anemoi does the same
// in float32, and models are trained with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/peers.h"
#include "graph/base/edge_list.h"
#include "graph/base/graph.h"

namespace aifs::graph {

// The edges of one set with the nodes at their ends. Borrows everything.
struct EdgeEnds {
  const NodeSet& source;
  const NodeSet& target;
  std::span<const int32_t> source_index, target_index;  // (M)
  int64_t num_threads = 1;                              // 0: all of the machine
  Peers* peers = nullptr;  // who have the other edges of the set; null: all are here

  size_t num_edges() const { return source_index.size(); }
};

// Great-circle angle between the ends in radians. (M)
template <class Real>
std::vector<Real> edge_length(const EdgeEnds& ends);

// Unit vector (x, y) of the source after the smallest rotation that takes the target to the north
// pole; (0, 0) if the ends coincide. (M, 2)
template <class Real>
std::vector<Real> edge_direction(const EdgeEnds& ends);

// Bearing at the target towards the source, clockwise from north, in (-pi, pi]. (M)
template <class Real>
std::vector<Real> edge_azimuth(const EdgeEnds& ends);

// sin, cos of m times the angle of edge_direction() with the x axis, m = 1 ... order.
// (M, 2 * order)
template <class Real>
std::vector<Real> directional_harmonics(const EdgeEnds& ends, int64_t order);

// exp(-((a - c) / sigma)^2) for every centre c, a = length / (longest edge at the same target).
// With a scale: a = length / scale, and centres are divided by it, too. (M, number of centres)
struct RadialBasis {
  std::optional<double> scale;  // radians
  std::vector<double> centers{0.0, 0.25, 0.5, 0.75, 1.0};
  double sigma = 0.2;
  double epsilon = 1e-10;  // the least scale
};
// Throws Error for a width or a centre (after division) outside its range.
template <class Real>
std::vector<Real> radial_basis(const EdgeEnds& ends, const RadialBasis& basis);

// exp(-length^2 / (2 sigma^2)), sigma in radians. (M)
template <class Real>
std::vector<Real> gaussian_distance_weights(const EdgeEnds& ends, double sigma);

// The rows of a node attribute at one end of the edges, `node_index` = source_index or
// target_index.
Attribute attribute_of_ends(const Attribute& node_attribute, std::span<const int32_t> node_index);

}  // namespace aifs::graph
