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
  for (const char* text : {"",
                           "20",
                           "2020-13",
                           "2020-00",
                           "2021-02-29",
                           "2020-01-01T25:00:00",
                           "2020-01-01T24:00:01",
                           "2020-01-01T12:60",
                           "2020-01-01T12:00:60",
                           "2020-01-01T",
                           "2020-01T06",
                           "2020T06",
                           "2020-W01T06",
                           "2020-01-01Z",
                           "2020-01-01T06:00:00.5",
                           "2020-01-01T06+25",
                           "2020-W00",
                           "2020-W54",
                           "2021-W53",
                           "2020-W01-8",
                           "2020-000",
                           "2021-366",
                           "202001011",
                           "2020-1-32",
                           "2020-01-01T06:0000",
                           "2020-01-01T6000",
                           "yesterday"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_date(text), Error);
  }
}

TEST_CASE("every form of a date in ISO 8601 is that date", "[time]") {
  const int64_t day = parse_date("2020-01-10"), six = day + 6 * 3600;
  for (const char* text : {"20200110", "2020-1-10", "2020-W02-5", "2020W025", "2020-010", "2020010",
                           " 2020-01-10 ", "2020-01-09T24:00"}) {
    INFO(text);
    REQUIRE(parse_date(text) == day);
  }
  for (const char* text : {"2020-01-10T06",
                           "2020-01-10T06:00",
                           "2020-01-10T06:00:00",
                           "2020-01-10 06",
                           "2020-01-10 6",
                           "2020-01-10 6:0:0",
                           "2020-01-10t06:00:00z",
                           "20200110T06",
                           "20200110T0600",
                           "20200110T060000",
                           "20200110T060000Z",
                           "20200110 06:00",
                           "2020-01-10T06Z",
                           "2020-01-10T06:00Z",
                           "2020-01-10T06:00:00.000",
                           "2020-01-10T06:00:00,0Z",
                           "2020-01-10T07:00:00+01:00",
                           "2020-01-10T07:30+0130",
                           "2020-01-10T05-01",
                           "2020-01-10 05:00:00 -1",
                           "2020-01-09T23:00:00-07:00",
                           "2020-01-11T05:00+23:00",
                           "2020-W02-5T06",
                           "2020-010T06:00"}) {
    INFO(text);
    REQUIRE(parse_date(text) == six);
  }
  REQUIRE(parse_date("2009-W53-7") == parse_date("2010-01-03"));
  REQUIRE(parse_date("2009-W01-1") == parse_date("2008-12-29"));
  REQUIRE(parse_date("1969-W01-1") == parse_date("1968-12-30"));
  REQUIRE(parse_date("2020-366") == parse_date("2020-12-31"));
}

TEST_CASE("the end of an incomplete date or time is its last second", "[time]") {
  const auto last = [](const char* text) { return format_date(parse_date(text, DateEnd::kEnd)); };
  REQUIRE(last("202002") == "2020-02-29T23:59:59");
  REQUIRE(last("2020-02-10") == "2020-02-10T23:59:59");
  REQUIRE(last("2020-W02") == "2020-01-12T23:59:59");
  REQUIRE(last("2020-01-10T06") == "2020-01-10T06:59:59");
  REQUIRE(last("2020-01-10T06:30") == "2020-01-10T06:30:59");
  REQUIRE(last("2020-01-10T06:30:15") == "2020-01-10T06:30:15");
  REQUIRE(last("2020-01-10T06Z") == "2020-01-10T06:59:59");
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
  REQUIRE(parse_duration("PT1.5H") == 5400);
  REQUIRE(parse_duration("P0,25D") == 21600);
  REQUIRE(parse_duration("P999999999.5D") > 0);
  for (const char* text :
       {"P", "PT", "P1DT", "P6H", "PT1D", "P1Y", "P1M", "PT1.00001H", "PT1..5H", "PT.H"}) {
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
