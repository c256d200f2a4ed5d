// SPDX-License-Identifier: Apache-2.0
#include "verify/scores.h"

#include <cmath>

#include "core/check.h"
#include "core/rng.h"
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

std::vector<float> truth_of(const data::AnalyticDataset& dataset, const std::string& date) {
  const auto width = static_cast<size_t>(dataset.info().num_variables());
  std::vector<float> all(4 * width), column;
  dataset.evaluate(parse_date(date), {0, 4}, all);
  for (size_t i = 0; i < 4; ++i)
    column.push_back(all[i * width + static_cast<size_t>(dataset.info().column("u_500"))]);
  return column;
}

}  // namespace

TEST_CASE("scores of a single forecast are weighted means of its errors", "[verify_scores]") {
  const std::vector<float> forecast{1, 5, 9, 100}, truth{2, 3, 9, 0}, start{0, 3, 5, 0};
  const std::vector<double> weights{1, 2, 1, 0};
  const auto scores = score_field({forecast, truth, start}, weights);
  REQUIRE(scores->squared_error == Approx((1 + 2 * 4 + 0) / 4.0));
  REQUIRE(scores->error == Approx((-1 + 2 * 2 + 0) / 4.0));
  REQUIRE(scores->absolute_error == Approx((1 + 2 * 2 + 0) / 4.0));
  REQUIRE(scores->crps == Approx(scores->absolute_error));
  REQUIRE(scores->persistence_squared_error == Approx((4 + 0 + 16) / 4.0));
  // Means 5 and 4.25.
  REQUIRE(scores->activity == Approx((16 + 0 + 16) / 4.0));
  REQUIRE(scores->truth_activity == Approx((1 * 5.0625 + 2 * 1.5625 + 22.5625) / 4.0));
  REQUIRE(scores->spread == 0.0);
}

TEST_CASE("scores of ensembles agree with their definitions, pair by pair", "[verify_scores]") {
  constexpr size_t kMembers = 5, kCells = 7;
  const CounterRng random(3);
  std::vector<float> forecast, truth, start(kCells, 0.0f);
  for (size_t i = 0; i < kMembers * kCells; ++i)
    forecast.push_back(static_cast<float>(random.normal(i)));
  for (size_t i = 0; i < kCells; ++i)
    truth.push_back(static_cast<float>(random.normal(100 + i)));
  const std::vector<double> weights(kCells, 0.5);
  double crps = 0.0, spread = 0.0, squares = 0.0;
  for (size_t i = 0; i < kCells; ++i) {
    const auto member = [&](size_t e) { return static_cast<double>(forecast[e * kCells + i]); };
    double mean = 0.0, near = 0.0, apart = 0.0, variance = 0.0;
    for (size_t e = 0; e < kMembers; ++e) {
      mean += member(e) / kMembers;
      near += std::abs(member(e) - static_cast<double>(truth[i])) / kMembers;
      for (size_t f = 0; f < kMembers; ++f)
        apart += std::abs(member(e) - member(f));
    }
    for (size_t e = 0; e < kMembers; ++e)
      variance += (member(e) - mean) * (member(e) - mean) / (kMembers - 1);
    crps += (near - apart / (2.0 * kMembers * (kMembers - 1))) / kCells;
    spread += variance / kCells;
    squares += std::pow(mean - static_cast<double>(truth[i]), 2) / kCells;
  }
  const auto scores = score_field({forecast, truth, start}, weights);
  REQUIRE(scores->crps == Approx(crps).epsilon(1e-12));
  REQUIRE(scores->spread == Approx(spread).epsilon(1e-12));
  REQUIRE(scores->squared_error == Approx(squares).epsilon(1e-12));
}

TEST_CASE("cells without a value do not count", "[verify_scores]") {
  const std::vector<float> forecast{NAN, 5, 1, 2}, truth{2, NAN, 2, 2}, start{0, 3, 0, NAN};
  const auto scores = score_field({forecast, truth, start}, std::vector<double>{1, 1, 1, 1});
  REQUIRE(scores->squared_error == 1.0);
  REQUIRE_FALSE(score_field({forecast, truth, start}, std::vector<double>{1, 1, 0, 1}));
}

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
  const ForecastScores scores = score_forecast(forecast, truth, parts);
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

TEST_CASE("cells are found in the dataset in its order, or named", "[verify_scores]") {
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
