// SPDX-License-Identifier: Apache-2.0
// The area around a set of reference nodes: everything within a margin of one of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/kd_tree.h"

namespace aifs::graph {

class AreaMask {
 public:
  // Reference coordinates in radians. Throws Error if the margin is not positive or there is no
  // reference node.
  AreaMask(std::span<const float> lat_rad, std::span<const float> lon_rad, double margin_km);

  // One byte per point: 1 if the chord to some reference node is at most that of the margin.
  std::vector<uint8_t> inside(std::span<const float> lat_rad, std::span<const float> lon_rad) const;

 private:
  KdTree<float> tree_;
  double distance2_;
};

}  // namespace aifs::graph
