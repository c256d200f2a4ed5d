// SPDX-License-Identifier: Apache-2.0
#include "verify/regions.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using verify::parse_region;

TEST_CASE("named regions are those that weather centres score", "[regions]") {
  REQUIRE(parse_region("global", "--regions").contains(-90.0, 359.0));
  REQUIRE(parse_region("nh", "--regions").contains(20.0, 10.0));
  REQUIRE_FALSE(parse_region("nh", "--regions").contains(19.9, 10.0));
  REQUIRE(parse_region("sh", "--regions").contains(-20.0, 200.0));
  REQUIRE(parse_region("tropics", "--regions").contains(0.0, -170.0));
  const auto europe = parse_region("europe", "--regions");
  REQUIRE(europe.contains(50.0, 350.0));  // 10 W
  REQUIRE_FALSE(europe.contains(50.0, 340.0));
}

TEST_CASE("a box may cross the date line, and longitudes may turn", "[regions]") {
  const auto pacific = parse_region("pacific=10/170/-10/-160", "--regions");
  REQUIRE(pacific.name == "pacific");
  for (const double lon : {170.0, 180.0, -180.0, 200.0, -160.0})
    REQUIRE(pacific.contains(0.0, lon));
  for (const double lon : {169.0, -159.0, 0.0})
    REQUIRE_FALSE(pacific.contains(0.0, lon));
}

TEST_CASE("cells weigh with the cosine of latitude inside, and nothing outside", "[regions]") {
  const std::vector<double> latitudes{60.0, 0.0, -60.0}, longitudes{0.0, 0.0, 0.0};
  const auto weights =
      verify::region_weights(parse_region("a=70/-5/-10/5", "--regions"), latitudes, longitudes);
  REQUIRE(weights[0] == Approx(0.5));
  REQUIRE(weights[1] == 1.0);
  REQUIRE(weights[2] == 0.0);
}

TEST_CASE("regions that mean nothing are refused", "[regions]") {
  for (const char* text : {"moon", "a=1/2/3", "a=1/2/3/4/5", "=10/0/0/10", "a=10,0,0,10",
                           "a=x/0/0/10", "a=0/0/10/10", "a=95/0/0/10", "a=10/0/0/nan"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(parse_region(text, "--regions"),
                        ContainsSubstring("'--regions'") && ContainsSubstring(text));
  }
}
