// SPDX-License-Identifier: Apache-2.0
// Parts of the globe that scores are of.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace aifs::verify {

// A box; west may be east of east: it reaches over the date line then.
struct Region {
  std::string name;
  double north_deg = 90.0, west_deg = -180.0, south_deg = -90.0, east_deg = 180.0;

  bool contains(double latitude_deg, double longitude_deg) const;
};

// "global", "nh", "sh" (beyond 20 degrees), "tropics" (20 S to 20 N), "europe" (35 to 75 N, 12.5 W
// to 42.5 E), as the World Meteorological Organization and ECMWF score; or "name=N/W/S/E". Throws
// ConfigError naming `option`.
Region parse_region(const std::string& text, const std::string& option);

// Weights of the cells of a region: the cosine of latitude inside, 0 outside; not all are 0 unless
// the region has no cell.
std::vector<double> region_weights(const Region& region, std::span<const double> latitudes_deg,
                                   std::span<const double> longitudes_deg);

}  // namespace aifs::verify
