// SPDX-License-Identifier: Apache-2.0
#include "app/forecast_tools/forecast_options.h"

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::ForecastCommand;
using app::start_dates;

namespace {

std::vector<std::string> texts(const ForecastCommand& command) {
  std::vector<std::string> dates;
  for (const int64_t date : start_dates(command))
    dates.push_back(format_date(date));
  return dates;
}

}  // namespace

TEST_CASE("start dates are listed, or all from the first to the last", "[forecast_options]") {
  ForecastCommand listed;
  listed.dates = {"2020-03-01T06", "2020-02-29", "2020-03-01T06:00:00"};
  REQUIRE(texts(listed) == std::vector<std::string>{"2020-02-29T00:00:00", "2020-03-01T06:00:00"});
  ForecastCommand many;
  many.first = "2019-12-31T12", many.last = "2020-01-01", many.every = "12h";
  REQUIRE(texts(many) == std::vector<std::string>{"2019-12-31T12:00:00", "2020-01-01T00:00:00",
                                                  "2020-01-01T12:00:00"});
}

TEST_CASE("dates that mean nothing are refused by the name of their option", "[forecast_options]") {
  ForecastCommand command;
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("'--dates'"));
  command.dates = {"yesterday"};
  REQUIRE_THROWS_WITH(start_dates(command),
                      ContainsSubstring("'--dates'") && ContainsSubstring("yesterday"));
  command.dates.clear();
  command.first = "2020-01-02", command.last = "2020-01-01";
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("'--last'"));
  command.last = "2020-02", command.every = "-6h";
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("'--every'"));
  command.every = "often";
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("'--every'"));
  command.first = "0001", command.last = "9999", command.every = "1s";
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("dates"));
}

TEST_CASE("texts of GRIB options and of cells mean something, or are refused",
          "[forecast_options]") {
  ForecastCommand command;
  REQUIRE_FALSE(app::file_grid(command));
  REQUIRE_FALSE(app::file_area(command));
  command.grib_names = {"ke=z", "wind=207"}, command.grib_keys = {"centre=lfpw"};
  command.grid = "0.5/0.25", command.interpolation = "nearest";
  const forecast::GribOptions grib = app::grib_options(command);
  REQUIRE(grib.names.at("wind") == "207");
  REQUIRE(grib.keys.front() == std::pair<std::string, std::string>("centre", "lfpw"));
  REQUIRE(app::file_grid(command)->interpolation == forecast::Interpolation::kNearest);
  REQUIRE(app::file_grid(command)->east_step_deg == 0.5);
  for (const char* text : {"ke", "=z", "ke="}) {
    command.grib_names = {text};
    REQUIRE_THROWS_WITH(app::grib_options(command), ContainsSubstring("'--grib-names'"));
  }
  command.area = "1/2/3";
  REQUIRE_THROWS_WITH(app::file_area(command), ContainsSubstring("'--area'"));
  command.dates.clear();
  REQUIRE_THROWS_WITH(start_dates(command), ContainsSubstring("'--dates'"));
  command.states = {"states.nc"};
  REQUIRE(start_dates(command).empty());
}
