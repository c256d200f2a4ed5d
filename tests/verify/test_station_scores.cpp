// SPDX-License-Identifier: Apache-2.0
#include "verify/station_scores.h"

#include <cmath>

#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Cells every 10 degrees of a region, whose value is their number; two members one apart.
struct Case {
  test::TemporaryFolder folder;
  test::ForecastSpec spec{.members = 2};

  Case() {
    spec.latitudes.clear(), spec.longitudes.clear();
    for (int row = 0; row < 4; ++row) {
      for (int column = 0; column < 4; ++column) {
        spec.latitudes.push_back(15.0 - 10.0 * row);
        spec.longitudes.push_back(10.0 * column);
      }
    }
    for (int lead = 0; lead < 2; ++lead)
      for (int member = 0; member < 2; ++member)
        for (int cell = 0; cell < 16; ++cell)
          spec.values.push_back(100.0 * lead + member + cell);
    test::write_forecast(folder.path() / "f.nc", spec);
  }
  ForecastReader forecast() const { return ForecastReader(folder.path() / "f.nc"); }
};

std::vector<float> numbers() {
  std::vector<float> field;
  for (int cell = 0; cell < 16; ++cell)
    field.push_back(static_cast<float>(cell));
  return field;
}

}  // namespace

TEST_CASE("stations get the nearest cell, or four cells by their inverse distance",
          "[station_scores]") {
  const Case data;
  const std::vector<Station> stations{
      {"cell", 5.0, 10.0}, {"near", 7.0, 12.0}, {"far", 60.0, 90.0}};
  const PointMap nearest(data.forecast(), stations, PointMethod::kNearest);
  REQUIRE(nearest.num_outside() == 1);
  const auto direct = nearest(numbers());
  REQUIRE(direct[0] == 5.0f);
  REQUIRE(direct[1] == 5.0f);
  REQUIRE(std::isnan(direct[2]));
  const auto mixed = PointMap(data.forecast(), stations, PointMethod::kInverseDistance)(numbers());
  REQUIRE(mixed[0] == 5.0f);
  // By the haversine formula, of the cells 5, 6, 1 and 2 around.
  double sum = 0.0, total = 0.0;
  constexpr double kRadians = 0.017453292519943295;
  for (const size_t cell : {5, 6, 1, 2}) {
    const double lat = data.spec.latitudes[cell] * kRadians,
                 lon = data.spec.longitudes[cell] * kRadians;
    const double a = std::pow(std::sin((lat - 7.0 * kRadians) / 2), 2) +
                     std::cos(lat) * std::cos(7.0 * kRadians) *
                         std::pow(std::sin((lon - 12.0 * kRadians) / 2), 2);
    const double weight = 1.0 / (2.0 * std::asin(std::sqrt(a)));
    sum += weight * static_cast<double>(cell), total += weight;
  }
  REQUIRE(mixed[1] == Approx(sum / total).epsilon(1e-6));
}

TEST_CASE("scores are means over the observations at valid dates", "[station_scores]") {
  const Case data;
  Observations observations{.path = "s",
                            .stations = {{"a", 15.0, 0.0}, {"b", 5.0, 10.0}, {"c", -15.0, 30.0}},
                            .variables = {"u_500"}};
  const int64_t start_s = parse_date("2020-01-02");
  observations.values[start_s + 21600] = {2.5f, 3.5f, NAN};
  observations.values[start_s + 99] = {0.0f, 0.0f, 0.0f};  // nothing is forecast for it
  const PointMap map(data.forecast(), observations.stations, PointMethod::kNearest);
  const StationSetup setup{
      observations, map, {{"global"}, {"north", 20, -180, 10, 180}}, {21600, 43200}, 2};
  auto sums = make_station_sums(setup);
  add_forecast(data.forecast(), setup, sums);
  add_forecast(data.forecast(), setup, sums);
  const auto rows = station_rows(setup, sums, 2);
  REQUIRE(rows.size() == 2);
  // The mean of the members is half above the number of the cell: 0.5 and 5.5.
  REQUIRE(rows[0]["region"] == "global");
  REQUIRE(rows[0]["observations"] == 4);
  REQUIRE(rows[0]["bias"].get<double>() == Approx(0.0).margin(1e-12));
  REQUIRE(rows[0]["rmse"].get<double>() == Approx(2.0));
  REQUIRE(rows[0]["mae"].get<double>() == Approx(2.0));
  REQUIRE(rows[0]["spread"].get<double>() == Approx(std::sqrt(0.5)));
  REQUIRE(rows[1]["region"] == "north");
  REQUIRE(rows[1]["observations"] == 2);
  REQUIRE(rows[1]["bias"].get<double>() == Approx(-2.0));
  REQUIRE_THAT(station_table(setup, sums, 0), ContainsSubstring("RMSE 6h") &&
                                                  ContainsSubstring("u_500") &&
                                                  ContainsSubstring("--"));
}
