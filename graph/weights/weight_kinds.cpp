// SPDX-License-Identifier: Apache-2.0
#include "graph/weights/weight_kinds.h"

#include "core/check.h"
#include "graph/weights/area_weights.h"
#include "graph/weights/planar_weights.h"

namespace aifs::graph {

void WeightKind::bind(config::Binder& b) {
  b.choice("norm", norm, {"how the weights are scaled"});
}

std::vector<double> SphericalKind::raw(const MeshNodes& nodes, int64_t threads,
                                       const std::string&) const {
  return spherical_area_weights(nodes.set.lat_rad, nodes.set.lon_rad, threads, nodes.peers);
}

void SphericalKind::check_places(const MeshNodes& nodes, int64_t threads) const {
  require_distinct_nodes(nodes.set.lat_rad, nodes.set.lon_rad, threads);
}

std::vector<double> UniformKind::raw(const MeshNodes& nodes, int64_t, const std::string&) const {
  return std::vector<double>(nodes.set.lat_rad.size(), 1.0);
}

void CosineLatitudeKind::bind(config::Binder& b) {
  b.number("min_value", least, {.min = 0.0, .max = 1e6}, {"at the poles"});
  b.number("max_value", most, {.min = 0.0, .max = 1e6}, {"at the equator"});
  WeightKind::bind(b);
}

std::vector<double> CosineLatitudeKind::raw(const MeshNodes& nodes, int64_t,
                                            const std::string&) const {
  return cosine_latitude_weights(nodes.set.lat_rad, least, most);
}

std::vector<double> IsolatitudeKind::raw(const MeshNodes& nodes, int64_t,
                                         const std::string&) const {
  return isolatitude_weights(nodes.set.lat_rad);
}

std::vector<double> PlanarKind::raw(const MeshNodes& nodes, int64_t threads,
                                    const std::string&) const {
  return planar_weights(nodes.set.lat_rad, nodes.set.lon_rad, threads).areas;
}

void MaskedPlanarKind::bind(config::Binder& b) {
  b.text("mask", mask, {"attribute of the nodes, listed before; the others count nothing"});
  WeightKind::bind(b);
}

std::vector<double> MaskedPlanarKind::raw(const MeshNodes& nodes, int64_t threads,
                                          const std::string& path) const {
  try {
    nodes.mask(mask);
  } catch (const Error& error) {
    throw ConfigError(path + ".mask", error.what(), error.hint());
  }
  return masked_planar_weights(nodes.set.lat_rad, nodes.set.lon_rad,
                               nodes.set.attributes.at(mask).values, threads);
}

}  // namespace aifs::graph
