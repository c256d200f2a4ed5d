// SPDX-License-Identifier: Apache-2.0
#include "core/time.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("dates survive a round trip, before 1970 too", "[time]") {
  for (const int64_t date : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-86400}, int64_t{-86401},
                             int64_t{951782400}, int64_t{4102444799}}) {
    REQUIRE(from_calendar(to_calendar(date)) == date);
    REQUIRE(parse_date(format_date(date)) == date);
  }
  REQUIRE(format_date(951782400) == "2000-02-29T00:00:00");
}

TEST_CASE("incomplete dates start and end where the calendar says", "[time]") {
  REQUIRE(parse_date("2020") == parse_date("2020-01-01T00:00:00"));
  REQUIRE(parse_date("2020", DateEnd::kEnd) == parse_date("2020-12-31T23:59:59"));
  REQUIRE(parse_date("2020-02", DateEnd::kEnd) == parse_date("2020-02-29T23:59:59"));
  REQUIRE(parse_date("20200203") == parse_date("2020-02-03 00:00:00"));
  REQUIRE(parse_date("1983-01-02T06:00:00Z") == parse_date("1983-01-02T06:00:00"));
}

TEST_CASE("texts that are no dates are refused", "[time]") {
  for (const char* text : {"", "20", "2020-13", "2021-02-29", "2020-01-01T12:00",
                           "2020-01-01T25:00:00", "yesterday"}) {
    REQUIRE_THROWS_AS(parse_date(text), Error);
  }
}

TEST_CASE("durations follow Anemoi's frequency grammar", "[time]") {
  REQUIRE(parse_duration("6h") == 21600);
  REQUIRE(parse_duration("6H") == 21600);
  REQUIRE(parse_duration("6") == 21600);
  REQUIRE(parse_duration("1d") == 86400);
  REQUIRE(parse_duration("-30m") == -1800);
  REQUIRE(parse_duration("10s") == 10);
  REQUIRE(parse_duration("6:00:00") == 21600);
  REQUIRE(parse_duration("1 day, 6:00:00") == 108000);
  REQUIRE_THROWS_AS(parse_duration("six"), Error);
  REQUIRE_THROWS_AS(parse_duration("6 weeks"), Error);
}

TEST_CASE("durations may be those of ISO 8601", "[time]") {
  REQUIRE(parse_duration("PT6H") == 21600);
  REQUIRE(parse_duration("P1D") == 86400);
  REQUIRE(parse_duration("P1DT12H30M5S") == 86400 + 12 * 3600 + 30 * 60 + 5);
  REQUIRE(parse_duration("-PT30M") == -1800);
  REQUIRE(parse_duration("pt1s") == 1);
  REQUIRE(parse_duration("P2W") == 14 * 86400);
  for (const char* text : {"P", "PT", "P1DT", "P6H", "PT1D", "P1Y", "P1M", "PT1.5H"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_duration(text), Error);
  }
}

TEST_CASE("texts of any length are refused, not fatal", "[time]") {
  const std::string blank(1000000, ' ');
  REQUIRE_THROWS_AS(parse_duration(blank + "6h"), Error);
  REQUIRE_THROWS_AS(parse_date(blank + "2020"), Error);
}

TEST_CASE("durations are written with the largest unit that divides", "[time]") {
  REQUIRE(format_duration(86400) == "1d");
  REQUIRE(format_duration(43200) == "12h");
  REQUIRE(format_duration(5400) == "90m");
  REQUIRE(format_duration(30) == "30s");
  REQUIRE(format_duration(-21600) == "-6h");
}
