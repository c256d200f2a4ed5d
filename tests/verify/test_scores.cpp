// SPDX-License-Identifier: Apache-2.0
#include "verify/scores.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"
#include "verify/cell_weights.h"

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

std::vector<float> truth_of(const data::AnalyticDataset& dataset, const std::string& date) {
  const auto width = static_cast<size_t>(dataset.info().num_variables());
  std::vector<float> all(4 * width), column;
  dataset.evaluate(parse_date(date), {0, 4}, all);
  for (size_t i = 0; i < 4; ++i)
    column.push_back(all[i * width + static_cast<size_t>(dataset.info().column("u_500"))]);
  return column;
}

}  // namespace

TEST_CASE("a forecast is scored against the dataset, where that has truth", "[verify_scores]") {
  const test::TemporaryFolder folder;
  const data::AnalyticDataset dataset = waves();
  test::ForecastSpec spec{.start = "2020-01-02 12:00:00"};
  const std::vector<float> wanted = truth_of(dataset, "2020-01-02T18"),
                           start = truth_of(dataset, "2020-01-02T12");
  for (const float value : wanted)
    spec.values.push_back(static_cast<double>(value) + 2.0);
  spec.values.resize(8, 0.0);
  test::write_forecast(folder.path() / "f.nc", spec);
  const ForecastReader forecast(folder.path() / "f.nc");
  const ScoredParts parts{{"u_500"}, {21600, 43200}, {{"global"}, parse_region("nh", "")}};
  Truth truth(dataset, forecast, parts.variables);
  const ScoredCells all{
      forecast.latitudes_deg(), forecast.longitudes_deg(),
      cell_weights(WeightKind::kCosine, forecast.latitudes_deg(), forecast.longitudes_deg(), "")};
  ScoreSetup setup{.truth = truth, .weights = {}, .threads = 2};
  for (const Region& region : parts.regions)
    setup.weights.push_back(region_weights(region, all, ""));
  const ForecastScores scores = score_forecast(forecast, setup, parts);
  const auto& global = *scores.scores[parts.place(0, 0, 0)];
  REQUIRE(global.error == Approx(2.0).epsilon(1e-5));
  REQUIRE(global.squared_error == Approx(4.0).epsilon(1e-5));
  const double w0 = std::cos(60 * 0.017453292519943295), w1 = std::cos(20 * 0.017453292519943295);
  const auto square = [&](size_t i) {
    return std::pow(static_cast<double>(start[i] - wanted[i]), 2);
  };
  REQUIRE(scores.scores[parts.place(0, 0, 1)]->persistence_squared_error ==
          Approx((w0 * square(0) + w1 * square(1)) / (w0 + w1)).epsilon(1e-5));
  REQUIRE_FALSE(scores.scores[parts.place(0, 1, 0)]);  // 2020-01-03 is not in the dataset
  REQUIRE(scores.num_without_truth == 1);
  const auto means = mean_scores(std::vector{scores, scores}, parts.size());
  REQUIRE(means[parts.place(0, 0, 0)].num_forecasts == 2);
  REQUIRE(means[parts.place(0, 0, 0)].mean.error == global.error);
  REQUIRE(means[parts.place(0, 1, 0)].num_forecasts == 0);
}
