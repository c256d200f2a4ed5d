// SPDX-License-Identifier: Apache-2.0
#include "verify/events.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

using aifs::verify::EventScores;

TEST_CASE("scores of the tornado forecasts of 1884 are those that were published", "[events]") {
  // Finley's: 28 hits, 72 false alarms, 23 misses, 2680 correct negatives; figures of Jolliffe and
  // Stephenson (2012), table 3.3.
  const EventScores finley{28, 72, 23, 2680, 0};
  REQUIRE(finley.base_rate() == Approx(51.0 / 2803.0));
  REQUIRE(finley.frequency_bias() == Approx(100.0 / 51.0));
  REQUIRE(finley.detection() == Approx(0.549).epsilon(1e-3));
  REQUIRE(finley.false_alarm_ratio() == Approx(0.720).epsilon(1e-3));
  REQUIRE(finley.equitable_threat() == Approx(0.216).epsilon(2e-3));
}

TEST_CASE("each cell is a hit, a miss, a false alarm or none of them", "[events]") {
  EventScores scores;
  const std::vector<double> above{2.0}, below{0.5}, equal{1.0};
  scores.add(1.0, above, 3.0, 1.0);
  scores.add(2.0, equal, 0.0, 1.0);  // reaches it
  scores.add(4.0, below, 1.0, 1.0);
  scores.add(8.0, below, 0.0, 1.0);
  REQUIRE(scores.hits == 1.0);
  REQUIRE(scores.false_alarms == 2.0);
  REQUIRE(scores.misses == 4.0);
  REQUIRE(scores.correct_negatives == 8.0);
  REQUIRE(scores.brier == 6.0);
}

TEST_CASE("members are forecasts of their own, and a probability together", "[events]") {
  EventScores scores;
  const std::vector<double> members{0.0, 1.0, 2.0, 3.0};
  scores.add(1.0, members, 5.0, 1.0);
  REQUIRE(scores.hits == 0.75);
  REQUIRE(scores.misses == 0.25);
  REQUIRE(scores.brier == Approx(0.0625));
}

TEST_CASE("what never happens has no scores", "[events]") {
  const EventScores never{0, 0, 0, 1, 0};
  REQUIRE(never.base_rate() == 0.0);
  for (const double score : {never.frequency_bias(), never.detection(), never.false_alarm_ratio(),
                             never.equitable_threat()})
    REQUIRE(std::isnan(score));
}
