// SPDX-License-Identifier: Apache-2.0
// Fields of a forecast on other cells: those of an area, or of a grid that is regular in latitude
// and longitude. Weights are made once for all fields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forecast/forecast_file.h"

namespace aifs::forecast {

// A box; west may be east of east: it reaches over the date line then.
struct Area {
  double north_deg = 90.0, west_deg = 0.0, south_deg = -90.0, east_deg = 360.0;

  bool contains(double latitude_deg, double longitude_deg) const;
};

enum class Interpolation {
  kNearest,       // the value of the nearest cell
  kConservative,  // the mean over a box around the point, of the boxes around cells
};

struct RegularGrid {
  double east_step_deg = 0.0, south_step_deg = 0.0;
  Interpolation interpolation = Interpolation::kConservative;
};

// "north/west/south/east" and "0.25/0.25" (eastwards, southwards), in degrees. Throw ConfigError
// naming the option.
Area parse_area(const std::string& text, const std::string& option);
RegularGrid parse_regular_grid(const std::string& text, const std::string& option);

// Row i of a sparse matrix has the weights of value i. They add up to one, or to less where the
// cells do not cover its box.
struct CellMap {
  std::vector<double> latitudes_deg, longitudes_deg;  // of the new cells
  std::vector<int64_t> field_shape;                   // {cells}, or {rows, columns}
  int64_t num_sources = 0;                            // cells that there were
  std::vector<int64_t> row_starts;                    // (new cells + 1)
  std::vector<int32_t> sources;
  std::vector<float> weights;

  int64_t num_cells() const { return static_cast<int64_t>(latitudes_deg.size()); }
  // A new cell has a value where weights of a half or more belong to cells that have one (no NaN),
  // which share the weights of the others. `threads` (0: all) do not change the bits.
  void apply(std::span<const float> from, std::span<float> to, int64_t threads) const;
};

// The cells of an area, in their order; rows and columns stay where they form a box. Throws
// ConfigError (path "--area") if there are none.
CellMap select_area(const ForecastContents& contents, const Area& area);

// A regular grid: of the whole globe from 90 N, 0 E on, or of an area from its north-western corner
// on. Boxes around cells reach half-way to the neighbours in a row; those of Gaussian grids are as
// high as their weights are large, so that means over the globe are kept. Throws ConfigError (path
// "--grid") for steps that do not fit, and for conservative weights of cells that lie in no rows.
CellMap map_to_grid(const ForecastContents& contents, const RegularGrid& grid,
                    const std::optional<Area>& area);

// Describes the mapped fields of a forecast.
ForecastContents mapped_contents(ForecastContents contents, const CellMap& map);
// Takes fields on the cells that a forecast has, and gives them to a file that was made for
// mapped_contents().
std::unique_ptr<ForecastFile> map_fields(std::unique_ptr<ForecastFile> file,
                                         std::shared_ptr<const CellMap> map, int64_t threads);

}  // namespace aifs::forecast
