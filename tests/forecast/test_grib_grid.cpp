// SPDX-License-Identifier: Apache-2.0
#include "forecast/grib_grid.h"

#include <cmath>

#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

// ecCodes computes coordinates from the description of the grid alone.
void require_cells(const graph::Coordinates& cells, const std::string& type) {
  INFO(type);
  data::GribMessage message = data::GribMessage::new_edition2();
  forecast::set_grid(forecast::find_cell_rows(cells.lat_deg, cells.lon_deg), message);
  const std::vector<double> values(cells.lat_deg.size(), 1.0);
  message.set("values", std::span<const double>(values));
  REQUIRE(message.text("gridType") == type);
  const std::vector<double> latitudes = message.reals("latitudes");
  const std::vector<double> longitudes = message.reals("longitudes");
  REQUIRE(latitudes.size() == cells.lat_deg.size());
  for (size_t i = 0; i < latitudes.size(); ++i) {
    REQUIRE(latitudes[i] == Approx(cells.lat_deg[i]).margin(2e-6));
    REQUIRE(std::abs(std::remainder(longitudes[i] - cells.lon_deg[i], 360.0)) < 2e-6);
  }
}

graph::Coordinates box(double north, double west, double south_step, double east_step, int rows,
                       int columns) {
  graph::Coordinates cells;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      cells.lat_deg.push_back(north - south_step * r);
      cells.lon_deg.push_back(west + east_step * c);
    }
  }
  return cells;
}

}  // namespace

TEST_CASE("a message places its values where the cells are", "[grib_grid]") {
  const auto gaussian = [](const char* name) {
    return graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
  };
  require_cells(gaussian("o16"), "reduced_gg");
  require_cells(gaussian("n32"), "reduced_gg");
  require_cells(gaussian("f16"), "regular_gg");
  require_cells(box(90, 0, 5, 2.5, 37, 144), "regular_ll");
  require_cells(box(-90, 0, -5, 360.0 / 7, 37, 7), "regular_ll");
  require_cells(box(60, -5, 0.25, 0.25, 9, 41), "regular_ll");
}
