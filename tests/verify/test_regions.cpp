// SPDX-License-Identifier: Apache-2.0
#include "verify/regions.h"

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

TEST_CASE("cells have their weight inside, and none outside", "[regions]") {
  const verify::ScoredCells cells{{60.0, 0.0, -60.0}, {0.0, 0.0, 0.0}, {0.5, 1.0, 0.5}};
  const auto weights =
      verify::region_weights(parse_region("a=70/-5/-10/5", "--regions"), cells, "--regions");
  REQUIRE(weights == std::vector<double>{0.5, 1.0, 0.0});
}

TEST_CASE("inside and outside are of datasets with a limited area", "[regions]") {
  verify::ScoredCells cells{{60.0, 0.0}, {0.0, 0.0}, {0.5, 1.0}, {true, false}};
  const auto inside = parse_region("inside", "--regions"),
             outside = parse_region("outside", "--regions");
  REQUIRE(verify::region_weights(inside, cells, "") == std::vector<double>{0.5, 0.0});
  REQUIRE(verify::region_weights(outside, cells, "") == std::vector<double>{0.0, 1.0});
  cells.is_inside.clear();
  REQUIRE_THROWS_WITH(verify::region_weights(inside, cells, "--regions"),
                      ContainsSubstring("'--regions'") && ContainsSubstring("limited area"));
}

TEST_CASE("regions that mean nothing are refused", "[regions]") {
  for (const char* text : {"moon", "a=1/2/3", "a=1/2/3/4/5", "=10/0/0/10", "a=10,0,0,10",
                           "a=x/0/0/10", "a=0/0/10/10", "a=95/0/0/10", "a=10/0/0/nan"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(parse_region(text, "--regions"),
                        ContainsSubstring("'--regions'") && ContainsSubstring(text));
  }
}
