// SPDX-License-Identifier: Apache-2.0
#include "forecast/cell_rows.h"

#include <cmath>

#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"

using namespace aifs;
using forecast::CellRows;
using forecast::find_cell_rows;
using Kind = CellRows::Kind;

namespace {

graph::Coordinates cells_of(const char* name) {
  return graph::gaussian_coordinates(graph::parse_gaussian_grid(name));
}

void require_kind(const graph::Coordinates& cells, Kind kind) {
  REQUIRE(find_cell_rows(cells.lat_deg, cells.lon_deg).kind == kind);
}

}  // namespace

TEST_CASE("Gaussian grids are known by their cells, whatever these are rounded to", "[cell_rows]") {
  require_kind(cells_of("f16"), Kind::kRegularGaussian);
  for (const char* name : {"o16", "n32"}) {
    graph::Coordinates cells = cells_of(name);
    for (size_t i = 0; i < cells.lat_deg.size(); ++i) {
      cells.lat_deg[i] = static_cast<double>(static_cast<float>(cells.lat_deg[i]));
      cells.lon_deg[i] = static_cast<double>(static_cast<float>(cells.lon_deg[i]));
      if (i % 2 == 1 && cells.lon_deg[i] > 180.0) cells.lon_deg[i] -= 360.0;
    }
    const CellRows found = find_cell_rows(cells.lat_deg, cells.lon_deg);
    REQUIRE(found.kind == Kind::kReducedGaussian);
    std::vector<int64_t> lengths;
    for (const forecast::CellRow& row : found.rows)
      lengths.push_back(row.length);
    REQUIRE(lengths == graph::parse_gaussian_grid(name).row_lengths());
  }
}

TEST_CASE("rows of equal length and distance are a regular grid, global or not", "[cell_rows]") {
  graph::Coordinates cells;
  for (int r = 0; r < 5; ++r) {
    for (int c = 0; c < 7; ++c) {
      cells.lat_deg.push_back(60.0 - 2.5 * r);
      cells.lon_deg.push_back(355.0 + c > 360.0 ? c - 5.0 : 355.0 + c);
    }
  }
  const CellRows found = find_cell_rows(cells.lat_deg, cells.lon_deg);
  REQUIRE(found.kind == Kind::kRegularLatLon);
  REQUIRE(found.rows.size() == 5);
  REQUIRE(found.rows[1].latitude_deg == 57.5);
  REQUIRE(found.rows[1].length == 7);
  REQUIRE(found.num_cells == 35);
}

TEST_CASE("cells out of order, moved or alone are no rows", "[cell_rows]") {
  graph::Coordinates cells = cells_of("o16");
  cells.lat_deg[40] += 0.01;
  require_kind(cells, Kind::kUnstructured);
  cells = cells_of("o16");
  std::swap(cells.lon_deg[3], cells.lon_deg[4]);
  require_kind(cells, Kind::kUnstructured);
  cells = cells_of("o16");
  cells.lat_deg.resize(300), cells.lon_deg.resize(300);
  require_kind(cells, Kind::kUnstructured);
  require_kind({{10.0}, {20.0}}, Kind::kUnstructured);
  require_kind({}, Kind::kUnstructured);
}

TEST_CASE("longitudes are turned into one circle", "[cell_rows]") {
  REQUIRE(forecast::positive_longitude(-90.0) == 270.0);
  REQUIRE(forecast::positive_longitude(725.0) == 5.0);
  REQUIRE(forecast::positive_longitude(-1e-9) == 0.0);
}
