// SPDX-License-Identifier: Apache-2.0
// How much each cell counts in scores.
#pragma once

#include <span>
#include <vector>

#include "core/enum_names.h"

namespace aifs::verify {

// cosine: of latitude, as the World Meteorological Organization scores; area: what a cell covers.
enum class WeightKind { kCosine, kArea };

// Weights (N), all positive, not normalised. Areas are exact: of Gaussian grids their quadrature
// weights, shared out over the cells of a row; of other rows around the globe the bands between
// the middles of latitudes; of other cells those of their spherical Voronoi cells. Throws
// ConfigError (path `option`) for areas of cells that do not cover the globe.
std::vector<double> cell_weights(WeightKind kind, std::span<const double> latitudes_deg,
                                 std::span<const double> longitudes_deg, const char* option);

constexpr auto enum_table(WeightKind) {
  using enum WeightKind;
  return std::to_array<EnumName<WeightKind>>({{kCosine, "cosine"}, {kArea, "area"}});
}

}  // namespace aifs::verify
