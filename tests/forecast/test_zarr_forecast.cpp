// SPDX-License-Identifier: Apache-2.0
#include "forecast/zarr_forecast.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/anemoi_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using forecast::ForecastContents;

namespace {

ForecastContents contents() {
  return {.start_s = parse_date("2020-02-03T06"),
          .lead_times_s = {21600, 43200, 64800},
          .variables = {{"t_850", "K"}, {"tp", ""}},
          .num_members = 2,
          .latitudes_deg = {10.0, 0.0, -20.0},
          .longitudes_deg = {0.0, 120.0, 240.0},
          .field_shape = {3},
          .model = "a model",
          .program = "a program",
          .identity = "of this"};
}

float value(int64_t lead, int64_t member, int64_t variable, int64_t cell) {
  return static_cast<float>(1000 * lead + 100 * member + 10 * variable + cell);
}

fs::path write(const test::TemporaryFolder& folder) {
  const fs::path path = folder.path() / "f.zarr";
  const auto file = forecast::create_zarr_forecast(path, contents());
  for (int64_t lead = 0; lead < 3; ++lead) {
    std::vector<float> fields;
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t v = 0; v < 2; ++v)
        for (int64_t i = 0; i < 3; ++i)
          fields.push_back(value(lead, e, v, i));
    fields[0] = NAN;
    file->write(lead, fields);
  }
  REQUIRE_FALSE(fs::exists(path));
  file->finish();
  return path;
}

}  // namespace

TEST_CASE("a forecast is a dataset that opens again, with dates of validity", "[zarr_forecast]") {
  const test::TemporaryFolder folder;
  const fs::path path = write(folder);
  data::DatasetOptions options;
  options.dataset = path.string();
  const data::AnemoiDataset dataset(options);
  const data::DatasetInfo& info = dataset.info();
  REQUIRE(info.variables == std::vector<std::string>{"t_850", "tp"});
  REQUIRE(info.dates_s.front() == parse_date("2020-02-03T12"));
  REQUIRE(info.dates_s.back() == parse_date("2020-02-04T00"));
  REQUIRE(info.frequency_s == 21600);
  REQUIRE(info.ensemble_size == 2);
  REQUIRE(info.latitudes_deg == contents().latitudes_deg);
  REQUIRE(info.kinds[0].units == "K");
  for (int64_t lead = 0; lead < 3; ++lead) {
    std::vector<float> fields(12);  // (E, N, V)
    dataset.read(lead, {0, 3}, fields);
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t v = 0; v < 2; ++v) {
          const float got = fields[static_cast<size_t>((e * 3 + i) * 2 + v)];
          if (e == 0 && i == 0 && v == 0)
            REQUIRE(std::isnan(got));
          else
            REQUIRE(got == value(lead, e, v, i));
        }
  }
  REQUIRE(info.statistics.maximum[1] == static_cast<double>(value(2, 1, 1, 2)));
  REQUIRE(info.statistics.minimum[1] == static_cast<double>(value(0, 0, 1, 0)));
}

TEST_CASE("a folder has its name only when it is whole, and says what it was made of",
          "[zarr_forecast]") {
  const test::TemporaryFolder folder;
  { const auto file = forecast::create_zarr_forecast(folder.path() / "part.zarr", contents()); }
  REQUIRE(fs::is_empty(folder.path()));
  REQUIRE(forecast::zarr_forecast_identity(write(folder)) == "of this");
  fs::create_directories(folder.path() / "other.zarr");
  REQUIRE_THROWS_WITH(forecast::zarr_forecast_identity(folder.path() / "other.zarr"),
                      ContainsSubstring("other.zarr/.zattrs"));
}
