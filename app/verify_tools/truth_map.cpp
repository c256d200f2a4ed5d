// SPDX-License-Identifier: Apache-2.0
#include "app/verify_tools/truth_map.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/log.h"
#include "forecast/cell_map.h"
#include "forecast/cell_rows.h"

namespace aifs::app {

namespace {

bool has_its_cells(const data::DatasetInfo& info, const verify::ForecastReader& forecast) {
  try {
    verify::cells_in(info, forecast);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

// Where a forecast lies, as the options of `forecast` say it.
struct GridOfForecast {
  forecast::RegularGrid grid;
  std::optional<forecast::Area> area;
};

std::optional<GridOfForecast> grid_of(const verify::ForecastReader& forecast) {
  const forecast::CellRows found =
      forecast::find_cell_rows(forecast.latitudes_deg(), forecast.longitudes_deg());
  if (found.kind != forecast::CellRows::Kind::kRegularLatLon || found.rows.size() < 2)
    return std::nullopt;
  const forecast::CellRow &north = found.rows.front(), &south = found.rows.back();
  const double east_step_deg =
      (north.last_deg - north.first_deg) / static_cast<double>(north.length - 1);
  const double south_step_deg =
      (north.latitude_deg - south.latitude_deg) / static_cast<double>(found.rows.size() - 1);
  if (north.length < 2 || east_step_deg <= 0.0 || south_step_deg <= 0.0) return std::nullopt;
  GridOfForecast result{{east_step_deg, south_step_deg}, {}};
  const bool is_global = north.latitude_deg == 90.0 && south.latitude_deg == -90.0 &&
                         north.first_deg == 0.0 &&
                         std::abs(north.last_deg + east_step_deg - 360.0) < east_step_deg / 2;
  if (!is_global)
    result.area = {north.latitude_deg, north.first_deg, south.latitude_deg, north.last_deg};
  return result;
}

// Throws DataError unless the map gives the cells of the forecast, but for rounding.
void require_cells(const forecast::CellMap& map, const verify::ForecastReader& forecast) {
  constexpr double kRounding_deg = 1e-3;
  bool same = map.num_cells() == forecast.num_cells();
  for (size_t i = 0; same && i < map.latitudes_deg.size(); ++i) {
    const double east = map.longitudes_deg[i] - forecast.longitudes_deg()[i];
    same = std::abs(map.latitudes_deg[i] - forecast.latitudes_deg()[i]) < kRounding_deg &&
           std::abs(std::remainder(east, 360.0)) < kRounding_deg;
  }
  if (same) return;
  throw DataError(
      concat("'", forecast.path(), "': its rows and columns are none that --grid makes"),
      "verify forecasts on cells of the dataset, or those of `forecast --grid`");
}

}  // namespace

verify::FieldMap truth_map(const data::DatasetInfo& info, const verify::ForecastReader& forecast,
                           const std::string& interpolation, int64_t threads) {
  if (has_its_cells(info, forecast)) return {};
  std::optional<GridOfForecast> found = grid_of(forecast);
  if (!found) return {};
  if (interpolation == "nearest") found->grid.interpolation = forecast::Interpolation::kNearest;
  forecast::ForecastContents cells;
  cells.latitudes_deg = info.latitudes_deg;
  cells.longitudes_deg = info.longitudes_deg;
  cells.field_shape = {info.num_nodes()};
  const auto turned = [&] {
    try {
      return forecast::map_to_grid(cells, found->grid, found->area);
    } catch (const ConfigError& error) {  // in words of `forecast --grid`
      throw ConfigError(
          "--truth",
          concat("its cells, of '", info.name, "', cannot be turned onto the grid of '",
                 forecast.path(), "'"),
          "conservative means need rows of cells: --interpolation nearest, or another "
          "truth");
    }
  };
  auto map = std::make_shared<const forecast::CellMap>(turned());
  require_cells(*map, forecast);
  log::info("the truth, '", info.name, "', is turned onto the grid of '", forecast.path(), "' (",
            interpolation, ")");
  return {interpolation, [map, threads](std::span<const float> from, std::span<float> to) {
            map->apply(from, to, threads);
          }};
}

}  // namespace aifs::app
