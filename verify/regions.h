// SPDX-License-Identifier: Apache-2.0
// Parts of the globe that scores are of.
#pragma once

#include <string>
#include <vector>

namespace aifs::verify {

// The cells of forecasts.
struct ScoredCells {
  std::vector<double> latitudes_deg, longitudes_deg;  // (N)
  std::vector<double> weights;                        // (N) positive
  std::vector<bool> is_inside = {};  // (N) in the limited area of the dataset; empty: it has none
};

// Which cells a region may have, wherever they are.
enum class RegionPart { kAll, kInside, kOutside };

// A box; west may be east of east: it reaches over the date line then.
struct Region {
  std::string name;
  double north_deg = 90.0, west_deg = -180.0, south_deg = -90.0, east_deg = 180.0;
  RegionPart part = RegionPart::kAll;

  bool contains(double latitude_deg, double longitude_deg) const;
};

// "global", "nh", "sh" (beyond 20 degrees), "tropics" (20 S to 20 N), "europe" (35 to 75 N, 12.5 W
// to 42.5 E), as the World Meteorological Organization and ECMWF score; "inside" and "outside" of
// the limited area of the dataset; or "name=N/W/S/E". Throws ConfigError naming `option`.
Region parse_region(const std::string& text, const std::string& option);

// Weights (N) of the cells of a region, 0 outside; not all are 0 unless the region has no cell.
// Throws ConfigError naming `option` for inside and outside where the dataset has no limited area.
std::vector<double> region_weights(const Region& region, const ScoredCells& cells,
                                   const std::string& option);

}  // namespace aifs::verify
