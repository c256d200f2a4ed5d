// SPDX-License-Identifier: Apache-2.0
#include "verify/forecast_reader.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"

using namespace aifs;

TEST_CASE("forecasts are the files and Zarr folders of that name", "[forecast_reader]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "forecast-a.nc", zarr = folder.path() / "forecast-b.zarr";
  REQUIRE_THROWS_WITH(verify::forecast_files(file), ContainsSubstring("does not exist"));
  REQUIRE_THROWS_WITH(verify::forecast_files(folder.path()), ContainsSubstring("forecast-*.nc"));
  make_directories(zarr);
  write_file_atomic(zarr / ".zgroup", R"({"zarr_format": 2})");
  write_file_atomic(folder.path() / "notes.txt", "");
  test::write_forecast(file, {.values = std::vector<double>(8, 0.0)});
  REQUIRE(verify::forecast_files(folder.path()) == std::vector<fs::path>{file, zarr});
  REQUIRE(verify::forecast_files(zarr) == std::vector<fs::path>{zarr});
}

TEST_CASE("variables that a forecast lacks are named", "[forecast_reader]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "forecast-a.nc";
  test::write_forecast(file, {.values = std::vector<double>(8, 0.0)});
  const verify::ForecastReader reader(file);
  std::vector<float> field(4);
  REQUIRE_THROWS_WITH(reader.read("t", 0, field), ContainsSubstring("no variable 't'"));
}
