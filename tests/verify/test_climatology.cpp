// SPDX-License-Identifier: Apache-2.0
#include "verify/climatology.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/open_test_dataset.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Three years every twelve hours on the first cells of an Anemoi store.
test::AnemoiSpec spec() {
  return {.variables = {"2t", "tp"},
          .num_dates = 3 * 366 * 2,
          .num_cells = 4,
          .frequency = "12h",
          .first_date_s = parse_date("2019-01-01"),
          .step_s = 43200,
          .missing = {40}};
}

struct Source {
  test::Stores stores{{"a", test::write_anemoi(spec())}};
  data::DatasetPtr dataset = test::open(stores, R"("a")");
  test::TemporaryFolder folder;

  Source() {
    const data::DatasetInfo& info = dataset->info();
    test::write_forecast(folder.path() / "f.nc", {.latitudes = info.latitudes_deg,
                                                  .longitudes = info.longitudes_deg,
                                                  .values = std::vector<double>(8, 0.0)});
  }
  ForecastReader forecast() const { return ForecastReader(folder.path() / "f.nc"); }
};

// By the definition: a mean over all dates, with weights of the distance in days.
double mean_of(const std::string& date, int64_t variable, int64_t cell, int64_t half) {
  const YearTime wanted = year_time(parse_date(date));
  double sum = 0.0, total = 0.0;
  for (int64_t row = 0; row < spec().num_dates; ++row) {
    const int64_t date_s = spec().first_date_s + row * 43200;
    const CalendarTime at = to_calendar(date_s);
    if (row == 40 || at.hour * 3600 != wanted.second) continue;
    // The nearest date of that day in the year before, this one or the next, of leap years.
    const int64_t day = (from_calendar({.year = 2020, .month = at.month, .day = at.day}) -
                         parse_date("2020-01-01")) /
                        86400;
    int64_t distance = 366;
    for (const int64_t turn : {-366, 0, 366})
      distance = std::min(distance, std::abs(day + turn - (wanted.day - 1)));
    if (distance > half) continue;
    const double weight = 1.0 - static_cast<double>(distance) / static_cast<double>(half + 1);
    sum += weight * static_cast<double>(test::position_value(spec(), row, variable, 0, cell));
    total += weight;
  }
  return sum / total;
}

}  // namespace

TEST_CASE("days are counted as in leap years, and the year closes on itself", "[climatology]") {
  REQUIRE(year_time(parse_date("2019-03-01T06")) == YearTime{61, 21600});
  REQUIRE(year_time(parse_date("2020-03-01T06")) == YearTime{61, 21600});
  REQUIRE(year_time(parse_date("2020-02-29")) == YearTime{60, 0});
  REQUIRE(year_time(parse_date("2021-12-31")) == YearTime{366, 0});
  REQUIRE(days_apart(366, 1) == 1);
  REQUIRE(days_apart(10, 360) == 16);
  REQUIRE(days_apart(1, 184) == 183);
}

TEST_CASE("a climatology is the weighted mean of the days around, by its definition",
          "[climatology]") {
  const Source source;
  const ForecastReader forecast = source.forecast();
  const std::vector<std::string> names{"2t", "tp"};
  const DatasetCells cells(*source.dataset, forecast, names);
  const std::vector<std::string> dates{"2020-01-03", "2020-02-29T12", "2020-12-30T12"};
  std::vector<YearTime> times;
  for (const std::string& date : dates)
    times.push_back(year_time(parse_date(date)));
  const fs::path path = source.folder.path() / "c.nc";
  for (const int64_t window : {int64_t{1}, int64_t{11}}) {
    for (const int64_t threads : {int64_t{1}, int64_t{3}}) {
      INFO(window << " days, " << threads << " threads");
      const ClimatologySettings settings{.window_days = window, .threads = threads};
      compute_climatology(cells, forecast, names, times, settings, path);
      const Climatology climatology(path);
      climatology.check(forecast, names, times);
      std::vector<float> field(4);
      for (const std::string& date : dates) {
        for (size_t v = 0; v < 2; ++v) {
          climatology.read(names[v], parse_date(date), field);
          for (size_t i = 0; i < 4; ++i)
            REQUIRE(field[i] == Approx(mean_of(date, static_cast<int64_t>(v),
                                               static_cast<int64_t>(i), (window - 1) / 2))
                                    .epsilon(1e-7));
        }
      }
    }
  }
}

TEST_CASE("a climatology of a period leaves out other dates", "[climatology]") {
  const Source source;
  const ForecastReader forecast = source.forecast();
  const DatasetCells cells(*source.dataset, forecast, {"2t"});
  const fs::path path = source.folder.path() / "c.nc";
  ClimatologySettings settings{.window_days = 1};
  settings.first_s = parse_date("2020"), settings.last_s = parse_date("2020", DateEnd::kEnd);
  const std::vector<YearTime> times{year_time(parse_date("2020-05-01"))};
  compute_climatology(cells, forecast, {"2t"}, times, settings, path);
  std::vector<float> field(4);
  Climatology(path).read("2t", parse_date("2017-05-01"), field);
  const int64_t row = (parse_date("2020-05-01") - spec().first_date_s) / 43200;
  REQUIRE(field[3] == test::position_value(spec(), row, 0, 0, 3));
  settings.first_s = parse_date("2020-06");
  REQUIRE_THROWS_WITH(compute_climatology(cells, forecast, {"2t"}, times, settings, path),
                      ContainsSubstring("05-01T00:00"));
}

TEST_CASE("the key of a climatology follows what it is made of", "[climatology]") {
  const Source source;
  const ForecastReader forecast = source.forecast();
  const DatasetCells cells(*source.dataset, forecast, {"2t"});
  const std::vector<YearTime> times{{5, 0}}, other{{6, 0}};
  const std::string key = climatology_key(cells, forecast, {"2t"}, times, {});
  REQUIRE(key.size() == 16);
  REQUIRE(climatology_key(cells, forecast, {"2t"}, times, {.threads = 7}) == key);
  REQUIRE(climatology_key(cells, forecast, {"2t"}, other, {}) != key);
  REQUIRE(climatology_key(cells, forecast, {"tp"}, times, {}) != key);
  REQUIRE(climatology_key(cells, forecast, {"2t"}, times, {.window_days = 3}) != key);
}

TEST_CASE("climatologies of other grids, variables or times are refused by name", "[climatology]") {
  const Source source;
  const ForecastReader forecast = source.forecast();
  const DatasetCells cells(*source.dataset, forecast, {"2t"});
  const fs::path path = source.folder.path() / "c.nc";
  const std::vector<YearTime> times{year_time(parse_date("2020-05-01"))};
  compute_climatology(cells, forecast, {"2t"}, times, {}, path);
  const Climatology climatology(path);
  REQUIRE_THROWS_WITH(climatology.check(forecast, {"3t"}, times),
                      ContainsSubstring("c.nc") && ContainsSubstring("'3t'"));
  REQUIRE_THROWS_WITH(climatology.check(forecast, {"2t"}, {year_time(parse_date("2020-05-02"))}),
                      ContainsSubstring("05-02T00:00"));
  test::write_forecast(source.folder.path() / "g.nc", {.values = std::vector<double>(8, 0.0)});
  REQUIRE_THROWS_WITH(
      climatology.check(ForecastReader(source.folder.path() / "g.nc"), {"2t"}, times),
      ContainsSubstring("another grid"));
  REQUIRE_THROWS_WITH(Climatology(source.folder.path() / "f.nc"),
                      ContainsSubstring("no variable 'day_of_year'"));
}
