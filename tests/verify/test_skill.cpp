// SPDX-License-Identifier: Apache-2.0
#include "verify/skill.h"

#include <cmath>
#include <vector>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using verify::ErrorPair;

TEST_CASE("skill is one minus the ratio of the errors of all dates", "[skill]") {
  const std::vector<ErrorPair> pairs{{1.0, 16.0}, {7.0, 16.0}};
  const auto skill = verify::bootstrap_skill(pairs);
  REQUIRE(skill.value == Approx(0.5));
  REQUIRE(std::isnan(skill.low));  // two dates prove nothing
  REQUIRE_FALSE(skill.is_significant());
  REQUIRE(std::isnan(verify::bootstrap_skill(std::vector<ErrorPair>(9, {1.0, 0.0})).value));
}

TEST_CASE("the interval of equal dates is a point, that of others holds most samples", "[skill]") {
  const std::vector<ErrorPair> equal(30, {1.0, 4.0});
  const auto sure = verify::bootstrap_skill(equal);
  REQUIRE(sure.low == Approx(0.5));
  REQUIRE(sure.high == Approx(0.5));
  REQUIRE(sure.is_significant());
  // Means of n squared normal numbers vary by sqrt(2 / n), their roots by half of it.
  constexpr int kDates = 400;
  const CounterRng random(5);
  std::vector<ErrorPair> pairs;
  for (uint64_t i = 0; i < kDates; ++i)
    pairs.push_back({std::pow(random.normal(i), 2), 1.0});
  const auto skill = verify::bootstrap_skill(pairs, 4000);
  REQUIRE((skill.high - skill.low) / 2 == Approx(1.96 * std::sqrt(0.5 / kDates)).epsilon(0.15));
  REQUIRE_FALSE(skill.is_significant());
}
