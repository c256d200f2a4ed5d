// SPDX-License-Identifier: Apache-2.0
#include "verify/regions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/check.h"

namespace aifs::verify {

namespace {

const std::vector<Region>& known_regions() {
  static const std::vector<Region> regions{{"global"},
                                           {"nh", 90, -180, 20, 180},
                                           {"sh", -20, -180, -90, 180},
                                           {"tropics", 20, -180, -20, 180},
                                           {"europe", 75, -12.5, 35, 42.5},
                                           {.name = "inside", .part = RegionPart::kInside},
                                           {.name = "outside", .part = RegionPart::kOutside}};
  return regions;
}

}  // namespace

bool Region::contains(double latitude_deg, double longitude_deg) const {
  if (latitude_deg > north_deg || latitude_deg < south_deg) return false;
  if (east_deg - west_deg >= 360.0) return true;
  const auto turn = [](double degrees) {  // into [0, 360)
    const double rest = std::fmod(degrees, 360.0);
    return rest < 0 ? rest + 360.0 : rest;
  };
  return turn(longitude_deg - west_deg) <= turn(east_deg - west_deg);
}

Region parse_region(const std::string& text, const std::string& option) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    std::vector<std::string> names;
    for (const Region& region : known_regions()) {
      if (region.name == text) return region;
      names.push_back(region.name);
    }
    throw ConfigError(option, concat("there is no region '", text, "'"),
                      concat(nearest_names(text, names), "; or name=north/west/south/east"));
  }
  Region region{text.substr(0, equals)};
  const auto wrong = [&](const std::string& why) {
    return ConfigError(option, concat("'", text, "': ", why),
                       "name=north/west/south/east in degrees: alps=48/5/44/16");
  };
  std::vector<double> sides;
  const char* at = text.c_str() + equals + 1;
  while (true) {
    char* end = nullptr;
    sides.push_back(std::strtod(at, &end));
    if (end == at || !std::isfinite(sides.back())) throw wrong("a side is no number");
    if (*end == '\0') break;
    if (*end != '/') throw wrong("sides are apart by '/'");
    at = end + 1;
  }
  if (region.name.empty() || sides.size() != 4) throw wrong("a name and four sides are needed");
  region.north_deg = sides[0], region.west_deg = sides[1];
  region.south_deg = sides[2], region.east_deg = sides[3];
  const bool in_range =
      sides[0] <= 90 && sides[2] >= -90 && std::abs(sides[1]) <= 360 && std::abs(sides[3]) <= 360;
  if (!in_range) throw wrong("latitudes are -90 to 90, longitudes -360 to 360");
  if (sides[0] <= sides[2]) throw wrong("north is not north of south");
  return region;
}

std::vector<double> region_weights(const Region& region, const ScoredCells& cells,
                                   const std::string& option) {
  const bool any_part = region.part == RegionPart::kAll;
  if (!any_part && cells.is_inside.empty())
    throw ConfigError(option, concat("'", region.name, "': the dataset has no limited area"),
                      "'inside' and 'outside' are of datasets that a cutout makes of grids");
  std::vector<double> weights(cells.weights.size(), 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!any_part && cells.is_inside[i] != (region.part == RegionPart::kInside)) continue;
    if (region.contains(cells.latitudes_deg[i], cells.longitudes_deg[i]))
      weights[i] = cells.weights[i];
  }
  return weights;
}

}  // namespace aifs::verify
