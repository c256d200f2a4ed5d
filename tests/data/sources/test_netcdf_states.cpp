// SPDX-License-Identifier: Apache-2.0
#include "data/sources/netcdf_states.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/netcdf_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using data::StateField;

namespace {

const StateField* find(const data::StateFile& file, const std::string& name, int64_t date_s) {
  for (const StateField& field : file.fields())
    if (field.name == name && field.date_s.value_or(date_s) == date_s) return &field;
  return nullptr;
}

std::vector<float> values_of(const data::StateFile& file, const StateField& field) {
  std::vector<float> values(
      static_cast<size_t>(field.members * file.grids()[field.grid].num_cells));
  file.read(static_cast<size_t>(&field - file.fields().data()), values);
  return values;
}

}  // namespace

TEST_CASE("fields of netCDF files have the names, levels and dates of Anemoi's variables",
          "[netcdf_states]") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "a.nc";
  {
    test::NetcdfWriter file(path);
    test::write_coordinate(file, "time", "hours since 2020-01-02 00:00:00", {0, 6});
    test::write_coordinate(file, "level", "hPa", {500, 850});
    test::write_coordinate(file, "latitude", "degrees_north", {10, -10});
    test::write_coordinate(file, "longitude", "degrees_east", {0, 90, 180});
    std::vector<double> t, t2m;
    for (int i = 0; i < 24; ++i)
      t.push_back(i);
    for (int i = 0; i < 12; ++i)
      t2m.push_back(100 + i);
    file.variable("t", "f4", {"time", "level", "latitude", "longitude"}, {{"units", "K"}}, t);
    file.variable("t2m", "f4", {"time", "latitude", "longitude"}, {{"units", "degC"}}, t2m);
    file.variable("lsm", "f4", {"latitude", "longitude"}, {}, {0, 1, 0, 1, 0, 1});
  }
  const auto file = data::open_netcdf_states(path.string());
  REQUIRE(file->grids().size() == 1);
  REQUIRE(file->grids()[0].latitudes_deg == std::vector<double>{10, 10, 10, -10, -10, -10});
  const int64_t first = parse_date("2020-01-02"), second = parse_date("2020-01-02T06");
  const StateField* t = find(*file, "t_850", second);
  REQUIRE(t);
  REQUIRE(values_of(*file, *t) == std::vector<float>{18, 19, 20, 21, 22, 23});
  const StateField* t2m = find(*file, "2t", first);
  REQUIRE(t2m);
  REQUIRE(t2m->units == "degC");
  REQUIRE(values_of(*file, *t2m) == std::vector<float>{100, 101, 102, 103, 104, 105});
  const StateField* lsm = find(*file, "lsm", first);
  REQUIRE(lsm);
  REQUIRE_FALSE(lsm->date_s);
  REQUIRE(file->fields().size() == 7);
}
