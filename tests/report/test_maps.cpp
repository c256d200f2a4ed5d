// SPDX-License-Identifier: Apache-2.0
#include "report/maps.h"

#include <cmath>
#include <limits>
#include <memory>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::report;

namespace {

// The waves at the four cells of a ForecastSpec.
data::AnalyticDataset waves() {
  data::AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-01-02T06";  // the second lead time has no truth
  options.max_degree = 4;
  const test::ForecastSpec spec;
  return {options, spec.latitudes, spec.longitudes};
}

class Files {
 public:
  verify::ForecastReader& add(const std::string& name, const test::ForecastSpec& spec) {
    test::write_forecast(folder_.path() / name, spec);
    readers_.push_back(std::make_unique<verify::ForecastReader>(folder_.path() / name));
    return *readers_.back();
  }

 private:
  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<verify::ForecastReader>> readers_;
};

test::ForecastSpec spec_of(std::vector<double> values, size_t members = 1) {
  test::ForecastSpec spec;
  spec.members = members;
  spec.values = std::move(values);
  return spec;
}

constexpr int64_t kRoom = 1 << 20;

}  // namespace

TEST_CASE("maps show the mean of members, the truth and the error beside it", "[maps]") {
  Files files;
  const float none = std::numeric_limits<float>::quiet_NaN();
  // Two members; at the second lead time the last cell has no value.
  const verify::ForecastReader& file =
      files.add("a.nc", spec_of({1, 2, 3, 4, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1, 1, none}, 2));
  const std::vector<NamedForecast> forecasts{{"a", &file}};
  const MapChoice choice = choose_maps(forecasts, {});
  CHECK(choice.variables == std::vector<std::string>{"u_500"});
  CHECK(choice.lead_times_s == std::vector<int64_t>{21600, 43200});

  const data::AnalyticDataset dataset = waves();
  verify::Truth truth(dataset, file, choice.variables);
  const auto json = maps_json(forecasts, choice, &truth, kRoom);
  CHECK(json["num_points"] == 4);
  CHECK(json["start"] == "2020-01-02T00:00:00");
  const auto& own = json["variables"][0]["forecasts"][0];
  CHECK(own["fields"][0]["low"] == 2.0);
  CHECK(own["fields"][0]["high"] == 5.0);
  CHECK(own["fields"][1]["codes"] == "gICAAA==");  // three values alike, one missing
  CHECK(json["variables"][0]["truth"][1].is_null());
  CHECK(own["errors"][1].is_null());
  CHECK(own["rmse"][1].is_null());

  const auto fields = truth.at(parse_date("2020-01-02T06"));
  REQUIRE(fields);
  double squares = 0.0, weights = 0.0, most = -1e30;
  for (size_t i = 0; i < 4; ++i) {
    const double error = static_cast<double>(i) + 2.0 - static_cast<double>((*fields)[i]);
    const double weight = std::cos(file.latitudes_deg()[i] * 3.141592653589793 / 180.0);
    squares += weight * error * error;
    weights += weight;
    most = std::max(most, error);
  }
  CHECK(own["rmse"][0].get<double>() == Approx(std::sqrt(squares / weights)).epsilon(1e-4));
  CHECK(own["errors"][0]["high"].get<double>() == Approx(most).epsilon(1e-5));
}

TEST_CASE("without a dataset maps have no truth", "[maps]") {
  Files files;
  const verify::ForecastReader& file = files.add("a.nc", spec_of({1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<NamedForecast> forecasts{{"a", &file}};
  const auto json = maps_json(forecasts, choose_maps(forecasts, {}), nullptr, kRoom);
  CHECK(json["has_truth"] == false);
  CHECK(json["variables"][0]["forecasts"][0]["errors"][0].is_null());
}

TEST_CASE("forecasts that do not fit together are refused by name", "[maps]") {
  Files files;
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  test::ForecastSpec later = spec_of(values), elsewhere = spec_of(values);
  later.start = "2020-01-03 00:00:00";
  elsewhere.latitudes[0] = 61.0;
  const verify::ForecastReader &a = files.add("a.nc", spec_of(values)),
                               &b = files.add("b.nc", later), &c = files.add("c.nc", elsewhere);
  CHECK_THROWS_WITH(choose_maps({{"a", &a}, {"b", &b}}, {}), ContainsSubstring("2020-01-03"));
  CHECK_THROWS_WITH(choose_maps({{"a", &a}, {"c", &c}}, {}), ContainsSubstring("different cells"));
  CHECK_THROWS_WITH(choose_maps({{"a", &a}}, {{"u_501"}, {}}), ContainsSubstring("'--variables'"));
  CHECK_THROWS_WITH(choose_maps({{"a", &a}}, {{}, {7}}), ContainsSubstring("'--lead-times'"));
  const std::vector<NamedForecast> one{{"a", &a}};
  CHECK_THROWS_WITH(maps_json(one, choose_maps(one, {}), nullptr, 100),
                    ContainsSubstring("room for"));
}
