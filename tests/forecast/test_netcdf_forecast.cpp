// SPDX-License-Identifier: Apache-2.0
#include "forecast/netcdf_forecast.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/netcdf_file.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using data::NetcdfFile;
using forecast::ForecastContents;

namespace {

// Two variables at three lead times on six cells.
ForecastContents contents() {
  return {.start_s = parse_date("2020-02-03T06"),
          .lead_times_s = {21600, 43200, 64800},
          .variables = {{"t_850", ""}, {"tp", "m"}},
          .num_members = 1,
          .latitudes_deg = {10.0, 10.0, 10.0, -20.0, -20.0, -20.0},
          .longitudes_deg = {0.0, 120.0, 240.0, 0.0, 120.0, 240.0},
          .field_shape = {6},
          .model = "a model",
          .program = "a program",
          .identity = "of this"};
}

// Returns what is written for a value: different everywhere.
float value(int64_t lead, int64_t member, int64_t variable, int64_t cell) {
  return static_cast<float>(1000 * lead + 100 * member + 10 * variable + cell);
}

fs::path write(const test::TemporaryFolder& folder, const ForecastContents& c, int compression) {
  const fs::path path = folder.path() / "f.nc";
  const auto file = forecast::create_netcdf_forecast(path, c, compression);
  const auto num_variables = static_cast<int64_t>(c.variables.size());
  for (int64_t lead = 0; lead < static_cast<int64_t>(c.lead_times_s.size()); ++lead) {
    std::vector<float> fields;
    for (int64_t e = 0; e < c.num_members; ++e)
      for (int64_t v = 0; v < num_variables; ++v)
        for (int64_t i = 0; i < 6; ++i)
          fields.push_back(value(lead, e, v, i));
    fields[0] = NAN;
    file->write(lead, fields);
  }
  file->finish();
  return path;
}

void require_values(const NetcdfFile& file, const ForecastContents& c) {
  for (size_t v = 0; v < c.variables.size(); ++v) {
    const std::vector<double> values = file.read_all(*file.find(c.variables[v].name));
    size_t at = 0;
    for (int64_t lead = 0; lead < 3; ++lead)
      for (int64_t e = 0; e < c.num_members; ++e)
        for (int64_t i = 0; i < 6; ++i, ++at)
          if (v == 0 && e == 0 && i == 0)
            REQUIRE(std::isnan(values[at]));
          else
            REQUIRE(values[at] == value(lead, e, static_cast<int64_t>(v), i));
    REQUIRE(at == values.size());
  }
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a forecast file has the fields that were written, with CF coordinates",
          "[netcdf_forecast]") {
  for (const int compression : {0, 4}) {
    const test::TemporaryFolder folder;
    const fs::path path = write(folder, contents(), compression);
    const NetcdfFile file(path.string());
    require_values(file, contents());
    const data::NetcdfVariable& t = *file.find("t_850");
    REQUIRE(t.dimensions == Names{"time", "cell"});
    REQUIRE(file.text(t, "standard_name") == "air_temperature");
    REQUIRE(file.text(t, "units") == "K");
    REQUIRE(file.text(*file.find("tp"), "units") == "m");
    REQUIRE(file.text(t, "coordinates") == "lead_time forecast_reference_time latitude longitude");
    const data::NetcdfVariable& time = *file.find("time");
    REQUIRE(file.text(time, "units") == "seconds since 2020-02-03 06:00:00");
    REQUIRE(file.read_all(time) == std::vector<double>{21600, 43200, 64800});
    REQUIRE(file.read_all(*file.find("lead_time")) == std::vector<double>{6, 12, 18});
    REQUIRE(file.read_all(*file.find("latitude")) == contents().latitudes_deg);
  }
}

TEST_CASE("cells on a regular grid have axes, members a dimension", "[netcdf_forecast]") {
  const test::TemporaryFolder folder;
  ForecastContents c = contents();
  c.field_shape = {2, 3};
  c.num_members = 2;
  const NetcdfFile regular(write(folder, c, 1).string());
  require_values(regular, c);
  REQUIRE(regular.find("t_850")->dimensions == Names{"time", "member", "latitude", "longitude"});
  REQUIRE(regular.read_all(*regular.find("latitude")) == std::vector<double>{10.0, -20.0});
  REQUIRE(regular.read_all(*regular.find("longitude")) == std::vector<double>{0.0, 120.0, 240.0});
  c.latitudes_deg[1] += 0.5;
  const NetcdfFile curved(write(folder, c, 1).string());
  require_values(curved, c);
  REQUIRE(curved.find("t_850")->dimensions == Names{"time", "member", "y", "x"});
  REQUIRE(curved.find("latitude")->dimensions == Names{"y", "x"});
}

TEST_CASE("a file has its name only when it is whole, and says what it was made of",
          "[netcdf_forecast]") {
  const test::TemporaryFolder folder;
  const auto files = [&] {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
  };
  {
    const auto file = forecast::create_netcdf_forecast(folder.path() / "part.nc", contents(), 1);
    REQUIRE_FALSE(fs::exists(folder.path() / "part.nc"));
  }
  REQUIRE(files() == 0);
  const fs::path path = write(folder, contents(), 1);
  REQUIRE(files() == 1);
  REQUIRE(forecast::forecast_identity(path) == "of this");
  write_file_atomic(folder.path() / "text.nc", "no netCDF");
  REQUIRE_THROWS_WITH(forecast::forecast_identity(folder.path() / "text.nc"),
                      ContainsSubstring("text.nc' is not a netCDF file"));
  REQUIRE_THROWS_WITH(
      forecast::create_netcdf_forecast(folder.path() / "no/such/f.nc", contents(), 1),
      ContainsSubstring("no/such/f.nc': cannot be created: No such file"));
}
