// SPDX-License-Identifier: Apache-2.0
// The grid that cells lie on, found from their coordinates: Gaussian, regular in latitude and
// longitude, or neither.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aifs::forecast {

// Cells of one latitude that follow each other, equally spaced eastwards.
struct CellRow {
  double latitude_deg = 0.0, first_deg = 0.0, last_deg = 0.0;  // longitudes as they are stored
  int64_t length = 0;
};

struct CellRows {
  enum class Kind { kReducedGaussian, kRegularGaussian, kRegularLatLon, kUnstructured };
  Kind kind = Kind::kUnstructured;
  int64_t num_cells = 0;
  std::vector<CellRow> rows = {};  // in the order of the cells; none of the last kind
};

// Coordinates may be rounded to 0.001 degrees, as fp32 and GRIB 1 do. A Gaussian grid is a global
// one whose rows run from north to south and from longitude 0 eastwards.
CellRows find_cell_rows(std::span<const double> latitudes_deg,
                        std::span<const double> longitudes_deg);

// Into [0, 360); what is 360 but for rounding is 0.
double positive_longitude(double longitude_deg);

}  // namespace aifs::forecast
