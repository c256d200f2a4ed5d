// SPDX-License-Identifier: Apache-2.0
#include "verify/verification.h"

#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Two dates, one in winter and one in summer, of one variable at two lead times, the second
// without scores.
std::vector<ForecastScores> scores(double first, double second) {
  FieldScores a, b;
  a.squared_error = first, a.persistence_squared_error = 8.0, a.climatology_squared_error = 2.0;
  b.squared_error = second, b.persistence_squared_error = 24.0, b.climatology_squared_error = 6.0;
  a.anomaly_correlation = 0.5, b.anomaly_correlation = 0.25;
  return {{parse_date("2020-01-01"), {a, std::nullopt}},
          {parse_date("2020-07-01"), {b, std::nullopt}}};
}

const ScoredParts kParts{{"u_500"}, {21600, 43200}, {{"global"}}};

}  // namespace

TEST_CASE("a summary has means over its season and skill against all references",
          "[verification]") {
  const auto all = summarise({"all", true}, kParts, scores(1.0, 7.0), scores(4.0, 28.0));
  REQUIRE(all.scores[0].num_forecasts == 2);
  REQUIRE(all.scores[1].num_forecasts == 0);
  REQUIRE(all.scores[0].mean.squared_error == 4.0);
  REQUIRE(all.scores[0].mean.anomaly_correlation == Approx(0.375));
  REQUIRE(all.against_persistence[0].value == Approx(0.5));
  REQUIRE(all.against_climatology[0].value == Approx(0.0).margin(1e-15));
  REQUIRE(all.against_other[0].value == Approx(0.5));
  REQUIRE(std::isnan(all.against_persistence[1].value));
  const auto summer = summarise({"JJA", false}, kParts, scores(1.0, 7.0), {});
  REQUIRE(summer.name == "JJA");
  REQUIRE(summer.scores[0].num_forecasts == 1);
  REQUIRE(summer.scores[0].mean.squared_error == 7.0);
  REQUIRE(summer.against_climatology.empty());
  REQUIRE(summer.against_other.empty());
}

TEST_CASE("forecasts of other dates cannot be compared", "[verification]") {
  std::vector<ForecastScores> other = scores(1.0, 1.0);
  other[0].start_s = 1, other[1].start_s = 2;
  REQUIRE_THROWS_WITH(skill_against(scores(1.0, 7.0), other, 2),
                      ContainsSubstring("no start date in common"));
}
