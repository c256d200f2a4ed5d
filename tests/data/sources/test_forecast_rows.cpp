// SPDX-License-Identifier: Apache-2.0
#include "data/sources/forecast_rows.h"

#include "core/check.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "data/sources/computed_forcings.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr int64_t kStep_s = 6 * 3600;

const std::vector<double> kLatitudes{-80.0, -10.0, 35.0, 70.0},
    kLongitudes{0.0, 95.0, 180.0, 300.0};

// Ten days of waves at four places.
std::shared_ptr<const AnalyticDataset> waves() {
  AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-01-10";
  options.max_degree = 4;
  return std::make_shared<AnalyticDataset>(options, kLatitudes, kLongitudes);
}

std::vector<float> row_of(const Dataset& dataset, int64_t row, NodeRange nodes) {
  std::vector<float> values(static_cast<size_t>(nodes.size() * dataset.info().num_variables()),
                            -1.0f);
  dataset.read(row, nodes, values);
  return values;
}

std::string message(const DatasetPtr& states, const ForecastRowsOptions& options) {
  try {
    ForecastRows rows(states, options);
  } catch (const DataError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

}  // namespace

TEST_CASE("the input states of a forecast are those of the dataset", "[forecast_rows]") {
  const auto states = waves();
  const ForecastRows rows(states, {.start_s = parse_date("2020-01-03T06"),
                                   .timestep_s = 2 * kStep_s,
                                   .num_states = 3,
                                   .num_times = 2});
  REQUIRE(rows.info().num_rows() == 5);
  REQUIRE(rows.info().frequency_s == 2 * kStep_s);
  const NodeRange nodes{1, 4};
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t date = parse_date("2020-01-03T06") + (i - 2) * 2 * kStep_s;
    REQUIRE(rows.info().dates_s[static_cast<size_t>(i)] == date);
    const int64_t row = (date - states->info().dates_s.front()) / kStep_s;
    const std::vector<float> wanted = row_of(*states, row, nodes);
    REQUIRE(row_of(rows, i, nodes) == wanted);
    std::vector<float> pieces(wanted.size());
    read_in_pieces(rows, i, nodes, pieces);
    REQUIRE(pieces == wanted);
  }
}

TEST_CASE("times to come have computed forcings of their date, and else means", "[forecast_rows]") {
  const auto states = waves();
  const int64_t start = states->info().dates_s.back();  // nothing of the dataset is after it
  const int64_t season = states->info().column("cos_julian_day");
  const int64_t latitude = states->info().column("cos_latitude");
  const ForecastRows rows(states, {.start_s = start,
                                   .timestep_s = kStep_s,
                                   .num_states = 2,
                                   .num_times = 40,
                                   .needed = {season, latitude}});
  REQUIRE(rows.from_dataset().empty());
  const NodeRange nodes{0, 4};
  const std::vector<double>& mean = states->info().statistics.mean;
  for (const int64_t row : {2, 41}) {
    const std::vector<float> values = row_of(rows, row, nodes);
    std::vector<float> wanted(4);
    compute_forcing("cos_julian_day", start + (row - 1) * kStep_s, kLatitudes, kLongitudes, wanted);
    const auto width = static_cast<size_t>(states->info().num_variables());
    for (size_t i = 0; i < values.size(); ++i) {
      if (static_cast<int64_t>(i % width) == season)
        REQUIRE(values[i] == wanted[i / width]);
      else if (static_cast<int64_t>(i % width) != latitude)
        REQUIRE(values[i] == static_cast<float>(mean[i % width]));
    }
  }
}

TEST_CASE("other needed variables come from the dataset, unless they are constant",
          "[forecast_rows]") {
  const auto states = waves();
  const int64_t u = states->info().column("u_500"), z = states->info().column("z_500");
  ForecastRowsOptions options{.start_s = parse_date("2020-01-09"),
                              .timestep_s = kStep_s,
                              .num_states = 2,
                              .num_times = 3,
                              .needed = {u, z},
                              .constant = {"z_500"}};
  const ForecastRows rows(states, options);
  REQUIRE(rows.from_dataset() == std::vector<std::string>{"u_500"});
  const NodeRange nodes{2, 4};
  const int64_t now = (options.start_s - states->info().dates_s.front()) / kStep_s;
  const std::vector<float> newest = row_of(*states, now, nodes);
  const std::vector<float> truth = row_of(*states, now + 3, nodes);
  const std::vector<float> values = row_of(rows, 4, nodes);
  const int64_t width = states->info().num_variables();
  for (int64_t i = 0; i < 2; ++i) {
    REQUIRE(values[static_cast<size_t>(i * width + u)] ==
            truth[static_cast<size_t>(i * width + u)]);
    REQUIRE(values[static_cast<size_t>(i * width + z)] ==
            newest[static_cast<size_t>(i * width + z)]);
  }
  options.num_times = 20;
  REQUIRE_THAT(message(states, options),
               ContainsSubstring("needs 'u_500' at 2020-01-11T00:00:00") &&
                   ContainsSubstring("to 2020-01-10T18:00:00") && ContainsSubstring("--constant"));
  options.constant = {"z_500", "u_500"};
  REQUIRE(message(states, options).empty());
}

TEST_CASE("a state that the dataset has not is named by its date", "[forecast_rows]") {
  ForecastRowsOptions options{
      .start_s = parse_date("2020-01-01"), .timestep_s = kStep_s, .num_states = 2};
  REQUIRE_THAT(
      message(waves(), options),
      ContainsSubstring("from 2020-01-01T00:00:00 needs the state of 2019-12-31T18:00:00") &&
          ContainsSubstring("2 states, 6h apart"));
  options.start_s = parse_date("2020-01-05T03");
  REQUIRE_THAT(message(waves(), options), ContainsSubstring("the state of 2020-01-05T03:00:00"));
}
