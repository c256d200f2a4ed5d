// SPDX-License-Identifier: Apache-2.0
#include "verify/truth.h"

#include "core/check.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// The waves at the four cells of a ForecastSpec.
data::AnalyticDataset waves() {
  data::AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-01-02";
  options.max_degree = 4;
  const test::ForecastSpec spec;
  return {options, spec.latitudes, spec.longitudes};
}

}  // namespace

TEST_CASE("cells are found in the dataset in its order, or named", "[truth]") {
  const test::TemporaryFolder folder;
  test::ForecastSpec spec;
  spec.latitudes = {20.0, -70.0}, spec.longitudes = {100.0, 300.0};
  spec.values.assign(4, 0.0);
  test::write_forecast(folder.path() / "some.nc", spec);
  const data::AnalyticDataset dataset = waves();
  REQUIRE(cells_in(dataset.info(), ForecastReader(folder.path() / "some.nc")) ==
          std::vector<int64_t>{1, 3});
  spec.longitudes = {100.0, 301.0};
  test::write_forecast(folder.path() / "other.nc", spec);
  REQUIRE_THROWS_WITH(cells_in(dataset.info(), ForecastReader(folder.path() / "other.nc")),
                      ContainsSubstring("its cell 1 at -70 N 301 E"));
}

TEST_CASE("truth is of the cells and variables of the forecasts", "[truth]") {
  const test::TemporaryFolder folder;
  test::ForecastSpec spec;
  spec.latitudes = {20.0, -70.0}, spec.longitudes = {100.0, 300.0};
  spec.values.assign(4, 0.0);
  test::write_forecast(folder.path() / "some.nc", spec);
  const ForecastReader forecast(folder.path() / "some.nc");
  const data::AnalyticDataset dataset = waves();
  Truth truth(dataset, forecast, {"u_500", "ke_850"});
  const auto fields = truth.at(parse_date("2020-01-01T12"));
  REQUIRE(fields->size() == 4);
  REQUIRE(truth.at(parse_date("2020-01-01T12")) == fields);  // kept
  REQUIRE(truth.at(parse_date("2019-01-01")) == nullptr);
  const auto width = static_cast<size_t>(dataset.info().num_variables());
  std::vector<float> all(4 * width);
  dataset.evaluate(parse_date("2020-01-01T12"), {0, 4}, all);
  const auto value = [&](size_t cell, const char* name) {
    return all[cell * width + static_cast<size_t>(dataset.info().column(name))];
  };
  REQUIRE(*fields == std::vector<float>{value(1, "u_500"), value(3, "u_500"), value(1, "ke_850"),
                                        value(3, "ke_850")});
  spec.longitudes[0] = 101.0;
  test::write_forecast(folder.path() / "other.nc", spec);
  REQUIRE_THROWS_WITH(truth.check_cells(ForecastReader(folder.path() / "other.nc")),
                      ContainsSubstring("different cells"));
}
