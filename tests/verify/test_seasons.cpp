// SPDX-License-Identifier: Apache-2.0
#include "verify/seasons.h"

#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::verify;

TEST_CASE("seasons are of three months each", "[seasons]") {
  REQUIRE(season_of(parse_date("2020-12-01")) == "DJF");
  REQUIRE(season_of(parse_date("2020-02-29T18")) == "DJF");
  REQUIRE(season_of(parse_date("2020-03-01")) == "MAM");
  REQUIRE(season_of(parse_date("2020-08-31T23")) == "JJA");
  REQUIRE(season_of(parse_date("2020-09-01")) == "SON");
  REQUIRE(season_of(parse_date("1969-11-30T23")) == "SON");
}

TEST_CASE("the date of validity says the season, not that of the start", "[seasons]") {
  const ScoredParts parts{{"a", "b"}, {86400, 172800}, {{"global"}}};
  const std::vector<ForecastScores> forecasts{
      {parse_date("2020-02-28"), std::vector<std::optional<FieldScores>>(4, FieldScores{})}};
  const auto winter = in_season(forecasts, parts, "DJF"),
             spring = in_season(forecasts, parts, "MAM");
  for (const size_t variable : {size_t{0}, size_t{1}}) {
    REQUIRE(winter[0].scores[parts.place(variable, 0, 0)]);  // 29 February
    REQUIRE_FALSE(winter[0].scores[parts.place(variable, 1, 0)]);
    REQUIRE_FALSE(spring[0].scores[parts.place(variable, 0, 0)]);
    REQUIRE(spring[0].scores[parts.place(variable, 1, 0)]);
  }
  REQUIRE(in_season(forecasts, parts, "all")[0].scores[3]);
}
