// SPDX-License-Identifier: Apache-2.0
#include "data/sources/cf_time.h"

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

std::string date(const char* units, const char* calendar, double count) {
  return format_date(CfTime(units, calendar).to_date(count));
}

}  // namespace

// Expected dates are those of cftime 1.6.
TEST_CASE("times are dates, by their units and calendars", "[data]") {
  CHECK(date("hours since 1980-01-14 14:00:00", "standard", 17598) == "1982-01-16T20:00:00");
  CHECK(date("hour since 1980-01-14 14:00:00", "", 17598) == "1982-01-16T20:00:00");
  CHECK(date("seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian", 1577836800) ==
        "2020-01-01T00:00:00");
  CHECK(date("hours since 1900-01-01 00:00:0.0", "gregorian", 1051896) == "2020-01-01T00:00:00");
  CHECK(date("minutes since 2020-02-28 12:00:00 +01:30", "standard", 1440) ==
        "2020-02-29T10:30:00");
  CHECK(date("days since 0001-01-01", "standard", 737425.25) == "2019-12-31T06:00:00");
  CHECK(date("days since 0001-01-01", "proleptic_gregorian", 737423.25) == "2019-12-31T06:00:00");
  CHECK(date("days since 1850-01-01", "noleap", 60000.5) == "2014-05-21T12:00:00");
  CHECK(date("days since 2000-02-28", "365_day", 1) == "2000-03-01T00:00:00");
  CHECK(date("days since 2000-01-01 00:00:0.0", "360_day", 58) == "2000-02-29T00:00:00");
  CHECK(date("days since 2001-01-01", "366_day", 58) == "2001-02-28T00:00:00");
  CHECK(date("days since 1-1-1", "julian", 737425.25) == "2019-12-31T06:00:00");  // the real date
}

TEST_CASE("small errors of floating-point times are rounded away", "[data]") {
  CHECK(date("days since 2000-01-01", "", 1.0 / 3.0) == "2000-01-01T08:00:00");
  CHECK(date("days since 2000-01-01", "", -0.25) == "1999-12-31T18:00:00");
}

TEST_CASE("what is no time, has no one length or is no date is refused", "[data]") {
  CHECK_FALSE(is_cf_time("degrees_north"));
  CHECK(is_cf_time("Hours Since 1980-01-01"));
  for (const char* units :
       {"K", "months since 2000-01-01", "years since 2000-01-01", "days since yesterday",
        "days since 2000-13-01", "days since 2000-01-01 x", "fortnights since 2000-01-01",
        "days since 2000-01-01 00:00 +1:00:zz"}) {
    CAPTURE(units);
    CHECK_THROWS_AS(CfTime(units, ""), DataError);
  }
  CHECK_THROWS_AS(CfTime("days since 2000-01-01", "mayan"), DataError);
  CHECK_THROWS_AS(date("days since 2001-01-01", "360_day", 59), DataError);  // 30 February
  CHECK_THROWS_AS(date("days since 2001-01-01", "366_day", 59), DataError);  // 29 February
  CHECK_THROWS_AS(date("days since 2001-01-01", "", 1e300), DataError);
  CHECK_THROWS_AS(date("days since 2001-01-01", "", 0.0 / 0.0), DataError);
}
