// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"
#include "verify/forecast_reader.h"

using namespace aifs;
using verify::ForecastReader;

namespace {

// Two members; dates from 2020-01-01 on, six hours apart.
const test::AnemoiSpec kSpec{.num_dates = 3, .num_members = 2};

fs::path write(const test::TemporaryFolder& folder, const std::string& start) {
  const auto store = test::write_anemoi(kSpec);
  if (!start.empty())
    test::edit(*store, ".zattrs", "{", concat(R"({"forecast_reference_time": )", start, ", "));
  test::write_to_folder(*store, folder.path() / "forecast-a.zarr");
  return folder.path() / "forecast-a.zarr";
}

}  // namespace

TEST_CASE("a Zarr forecast gives its start, lead times and fields", "[zarr_source]") {
  const test::TemporaryFolder folder;
  const ForecastReader reader(write(folder, R"("2019-12-31T00:00:00")"));
  REQUIRE(reader.start_s() == parse_date("2019-12-31"));
  REQUIRE(reader.lead_times_s() == std::vector<int64_t>{86400, 108000, 129600});
  REQUIRE(reader.variables() == kSpec.variables);
  REQUIRE(reader.num_members() == 2);
  std::vector<float> fields(static_cast<size_t>(2 * kSpec.num_cells));
  for (const size_t lead : {size_t{2}, size_t{0}}) {
    for (int64_t v = 0; v < 5; ++v) {
      reader.read(kSpec.variables[static_cast<size_t>(v)], lead, fields);
      for (int64_t e = 0; e < 2; ++e)
        for (int64_t i = 0; i < kSpec.num_cells; ++i)
          REQUIRE(fields[static_cast<size_t>(e * kSpec.num_cells + i)] ==
                  test::position_value(kSpec, static_cast<int64_t>(lead), v, e, i));
    }
  }
}

TEST_CASE("a Zarr forecast that does not say its start began a step before", "[zarr_source]") {
  const test::TemporaryFolder folder;
  const ForecastReader reader(write(folder, ""));
  REQUIRE(reader.start_s() == parse_date("2019-12-31T18"));
  REQUIRE(reader.lead_times_s().front() == 21600);
}

TEST_CASE("a start that is no date is an error", "[zarr_source]") {
  for (const char* start : {"\"never\"", "7"}) {
    const test::TemporaryFolder folder;
    REQUIRE_THROWS_WITH(
        ForecastReader(write(folder, start)),
        ContainsSubstring("forecast-a.zarr") && ContainsSubstring("forecast_reference_time"));
  }
}
