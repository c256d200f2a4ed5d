// SPDX-License-Identifier: Apache-2.0
#include "train/scores/score_choice.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using train::Better;
using train::ScoreChoice;

namespace {

const std::vector<std::string> kKnown{"loss",           "mean_ratio_6h", "rmse_z_500_6h",
                                      "skill_z_500_6h", "bias_z_500_6h", "era5/skill_nh_t_6h"};

std::string refusal(const ScoreChoice& choice) {
  try {
    choice.check("train.early_stop", kKnown);
  } catch (const ConfigError& error) {
    return concat(error.path(), " | ", error.hint());
  }
  return "taken";
}

}  // namespace

TEST_CASE("the lower error and the higher skill is the better one, unless it is said otherwise",
          "[score_choice]") {
  const ScoreChoice error{"rmse_z_500_6h"}, skill{"skill_z_500_6h"}, of_dataset{"era5/skill_t_6h"};
  REQUIRE(error.is_better(1.0, 2.0));
  REQUIRE_FALSE(error.is_better(2.0, 2.0));
  REQUIRE(skill.is_better(2.0, 1.0));
  REQUIRE_FALSE(skill.is_better(1.0, 2.0));
  REQUIRE(of_dataset.is_better(2.0, 1.0));
  REQUIRE(ScoreChoice{"loss", Better::kHigher}.is_better(2.0, 1.0));
  REQUIRE(ScoreChoice{"skill_z_500_6h", Better::kLower}.is_better(1.0, 2.0));
}

TEST_CASE("a gain is larger than the margin, in either direction", "[score_choice]") {
  const ScoreChoice error{"loss"}, skill{"skill_z_500_6h"};
  REQUIRE_FALSE(error.is_better(1.75, 2.0, 0.25));
  REQUIRE(error.is_better(1.5, 2.0, 0.25));
  REQUIRE_FALSE(skill.is_better(2.25, 2.0, 0.25));
  REQUIRE(skill.is_better(2.5, 2.0, 0.25));
}

TEST_CASE("what is not finite is never better, and anything finite is better than it",
          "[score_choice]") {
  const ScoreChoice error{"loss"}, skill{"skill_z_500_6h"};
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (const ScoreChoice& choice : {error, skill}) {
      REQUIRE_FALSE(choice.is_better(bad, 1.0));
      REQUIRE_FALSE(choice.is_better(bad, bad));
      REQUIRE(choice.is_better(1.0, bad));
    }
  }
}

TEST_CASE("a score that there is not is refused with the nearest, one without a direction too",
          "[score_choice]") {
  REQUIRE(refusal({"loss"}) == "taken");
  REQUIRE(refusal({"bias_z_500_6h", Better::kLower}) == "taken");
  REQUIRE_THAT(refusal({"rmse_z500_6h"}),
               ContainsSubstring("train.early_stop.score | nearest: 'rmse_z_500_6h'"));
  REQUIRE_THAT(refusal({"bias_z_500_6h"}), ContainsSubstring("train.early_stop.better"));
}
