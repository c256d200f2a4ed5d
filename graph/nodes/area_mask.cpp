// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/area_mask.h"

#include "core/check.h"

namespace aifs::graph {

AreaMask::AreaMask(std::span<const float> lat_rad, std::span<const float> lon_rad, double margin_km)
    : tree_(unit_vectors<float>(lat_rad, lon_rad)) {
  if (!(margin_km > 0)) throw Error(concat("a margin must be positive, got ", margin_km, " km"));
  if (lat_rad.empty()) throw Error("an area needs reference nodes, there are none");
  const double chord = chord_of_arc(margin_km);
  distance2_ = chord * chord;
}

std::vector<uint8_t> AreaMask::inside(std::span<const float> lat_rad,
                                      std::span<const float> lon_rad) const {
  const auto points = unit_vectors<float>(lat_rad, lon_rad);
  std::vector<uint8_t> mask;
  mask.reserve(points.size());
  std::vector<Neighbour> found;
  for (const Point<float>& point : points) {
    tree_.nearest(point, 1, found);
    mask.push_back(found.front().distance2 <= distance2_ ? 1 : 0);
  }
  return mask;
}

}  // namespace aifs::graph
