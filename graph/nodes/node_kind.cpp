// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/node_kind.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace aifs::graph {

namespace {

constexpr double kMostLatitude_deg = 90.0 + 1e-4, kMostLongitude_deg = 540.0;

// Degrees of the whole sphere within a few radians were most likely written as radians.
bool look_like_radians(const Coordinates& degrees) {
  const auto most = [](const std::vector<double>& values) {
    double largest = 0.0;
    for (const double value : values)
      largest = std::max(largest, std::abs(value));
    return largest;
  };
  const double lat = most(degrees.lat_deg), lon = most(degrees.lon_deg);
  return lat <= 1.5708 && lon <= 6.2832 && lat > 1.3 && lon > 2.9;
}

}  // namespace

NodeSet NodePlace::at_degrees(const Coordinates& degrees) const {
  const size_t count = degrees.lat_deg.size();
  if (count == 0) throw DataError(concat("nodes '", name, "': there are no coordinates"));
  if (degrees.lon_deg.size() != count) {
    throw DataError(concat("nodes '", name, "': ", count, " latitudes and ", degrees.lon_deg.size(),
                           " longitudes"));
  }
  for (size_t i = 0; i < count; ++i) {
    const double lat = degrees.lat_deg[i], lon = degrees.lon_deg[i];
    if (std::abs(lat) <= kMostLatitude_deg && std::abs(lon) <= kMostLongitude_deg) continue;
    throw DataError(
        concat("nodes '", name, "': node ", i, " is at latitude ", lat, ", longitude ", lon),
        "latitudes are from -90 to 90 degrees, longitudes from -180 to 360");
  }
  if (look_like_radians(degrees)) {
    throw DataError(concat("nodes '", name, "': the coordinates look like radians"),
                    "they are given in degrees");
  }
  return {name,
          radians_from_degrees(degrees.lat_deg, arithmetic),
          radians_from_degrees(degrees.lon_deg, arithmetic),
          {}};
}

void AreaOptions::bind(config::Binder& b) {
  b.text("reference", reference, {"node set, listed before, that the area lies around"});
  b.text("mask", mask, {"attribute of that set: only nodes where it is not 0; empty: all"});
  b.number("margin_km", margin_km, {.min = 1e-3, .max = 20000.0},
           {"how far the area reaches beyond those nodes", "km"});
}

std::shared_ptr<const AreaMask> AreaOptions::make(const NodePlace& place) const {
  const auto found = place.before.find(reference);
  if (found == place.before.end()) {
    std::vector<std::string> known;
    for (const auto& [name, nodes] : place.before)
      known.push_back(name);
    throw ConfigError(place.path + ".reference",
                      concat("no node set '", reference, "' stands before '", place.name, "'"),
                      nearest_names(reference, known));
  }
  const MeshNodes& nodes = found->second;
  if (mask.empty())
    return std::make_shared<AreaMask>(nodes.set.lat_rad, nodes.set.lon_rad, margin_km);
  std::vector<uint8_t> wanted;
  try {
    wanted = nodes.mask(mask);
  } catch (const Error& error) {
    throw ConfigError(place.path + ".mask", error.what(), error.hint());
  }
  std::vector<float> lat, lon;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0) continue;
    lat.push_back(nodes.set.lat_rad[i]);
    lon.push_back(nodes.set.lon_rad[i]);
  }
  if (lat.empty()) {
    throw ConfigError(place.path + ".mask",
                      concat("'", mask, "' selects none of the nodes '", reference, "'"));
  }
  return std::make_shared<AreaMask>(lat, lon, margin_km);
}

MeshNodes limited_to(std::shared_ptr<const AreaMask> area, const MeshNodes& nodes) {
  const std::vector<uint8_t> inside = area->inside(nodes.set.lat_rad, nodes.set.lon_rad);
  MeshNodes kept{.set = {nodes.set.name, {}, {}, {}}, .area = std::move(area)};
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == 0) continue;
    kept.set.lat_rad.push_back(nodes.set.lat_rad[i]);
    kept.set.lon_rad.push_back(nodes.set.lon_rad[i]);
  }
  return kept;
}

}  // namespace aifs::graph
