// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"
#include "verify/forecast_reader.h"

using namespace aifs;
using verify::ForecastReader;

TEST_CASE("a forecast file gives its start, lead times and fields", "[netcdf_source]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "forecast-a.nc";
  test::ForecastSpec spec{.members = 2};
  for (int i = 0; i < 16; ++i)
    spec.values.push_back(i);
  test::write_forecast(path, spec);
  const ForecastReader reader(path);
  REQUIRE(reader.start_s() == parse_date("2020-01-02"));
  REQUIRE(reader.lead_times_s() == std::vector<int64_t>{21600, 43200});
  REQUIRE(reader.variables() == std::vector<std::string>{"u_500"});
  REQUIRE(reader.num_members() == 2);
  REQUIRE(reader.latitudes_deg() == spec.latitudes);
  std::vector<float> fields(8);
  reader.read("u_500", 1, fields);
  for (size_t i = 0; i < 8; ++i)
    REQUIRE(fields[i] == static_cast<float>(8 + i));
}

TEST_CASE("axes are those of every cell", "[netcdf_source]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "forecast-a.nc";
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "seconds since 2020-01-02 00:00:00", {3600});
    write_coordinate(file, "latitude", "degrees_north", {10, -10});
    write_coordinate(file, "longitude", "degrees_east", {0, 120, 240});
    file.variable("t", "f4", {"time", "latitude", "longitude"}, {}, {1, 2, 3, 4, 5, 6});
  }
  const ForecastReader reader(path);
  REQUIRE(reader.latitudes_deg() == std::vector<double>{10, 10, 10, -10, -10, -10});
  REQUIRE(reader.longitudes_deg() == std::vector<double>{0, 120, 240, 0, 120, 240});
}

TEST_CASE("files that are no forecasts are named, with what they lack", "[netcdf_source]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "forecast-a.nc";
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "hours since 2020-01-02", {1});
  }
  REQUIRE_THROWS_WITH(ForecastReader(path),
                      ContainsSubstring("forecast-a.nc': 'time' is in 'hours"));
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "seconds since 2020-01-02 00:00:00", {1});
  }
  REQUIRE_THROWS_WITH(ForecastReader(path), ContainsSubstring("no variable 'latitude'"));
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "seconds since garbage", {1});
  }
  REQUIRE_THROWS_WITH(ForecastReader(path),
                      ContainsSubstring("forecast-a.nc'") && ContainsSubstring("garbage"));
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "seconds since 2020-01-02 00:00:00", {1});
    file.dimension("cell", 3);
    file.dimension("other", 2);
    file.variable("latitude", "f8", {"cell"}, {}, {1, 2, 3});
    file.variable("longitude", "f8", {"other"}, {}, {1, 2});
    file.variable("t", "f4", {"time", "cell"}, {}, {1, 2, 3});
  }
  REQUIRE_THROWS_WITH(ForecastReader(path), ContainsSubstring("3 latitudes and 2 longitudes"));
  {
    test::NetcdfWriter file(path);
    write_coordinate(file, "time", "seconds since 2020-01-02 00:00:00", {1});
    file.dimension("cell", 3);
    file.dimension("member", 2);
    file.variable("latitude", "f8", {"cell"}, {}, {1, 2, 3});
    file.variable("longitude", "f8", {"cell"}, {}, {1, 2, 3});
    file.variable("t", "f4", {"time", "member", "cell"}, {}, {1, 2, 3, 1, 2, 3});
    file.variable("u", "f4", {"time", "cell"}, {}, {1, 2, 3});
  }
  REQUIRE_THROWS_WITH(ForecastReader(path), ContainsSubstring("'u' has another shape"));
}
