// SPDX-License-Identifier: Apache-2.0
// The rates are from appendix A.3 of the specification of training.
#include "train/optim/schedule.h"

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

const ScheduleOptions kLong{
    .lr = 5e-4, .lr_min = 3e-7, .warmup_steps = 1000, .total_steps = 150000};

std::vector<int64_t> lengths(const RolloutOptions& options, int64_t epochs) {
  std::vector<int64_t> result;
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    result.push_back(rollout_at(options, epoch, 1000 + epoch));
  return result;
}

}  // namespace

TEST_CASE("the cosine schedule has the reference rates", "[schedule]") {
  const std::vector<std::pair<int64_t, double>> rates{{0, 0.0},
                                                      {1, 5e-7},
                                                      {500, 2.5e-4},
                                                      {999, 4.995e-4},
                                                      {1000, 4.999452037662e-4},
                                                      {1001, 4.999450941229e-4},
                                                      {75000, 2.5015e-4},
                                                      {149999, 3.000000547982e-7},
                                                      {150000, 3e-7},
                                                      {10000000, 3e-7}};
  for (const auto& [step, rate] : rates) {
    INFO("step " << step);
    REQUIRE(std::abs(learning_rate(kLong, step) - rate) <= 5e-13 * rate + 5e-17);
  }
}

TEST_CASE("without warm-up the first step has the full rate", "[schedule]") {
  const ScheduleOptions options{.lr = 1e-3, .lr_min = 1e-5, .warmup_steps = 0, .total_steps = 50};
  REQUIRE(learning_rate(options, 0) == 1e-3);
  REQUIRE(learning_rate(options, 25) == Approx(0.5 * (1e-3 + 1e-5)).epsilon(1e-14));
}

TEST_CASE("rates rise until the warm-up ends, then fall", "[schedule]") {
  for (int64_t step = 1; step < 1000; ++step)
    REQUIRE(learning_rate(kLong, step) > learning_rate(kLong, step - 1));
  for (int64_t step = 2000; step <= 150000; step += 1000)
    REQUIRE(learning_rate(kLong, step) < learning_rate(kLong, step - 1000));
}

TEST_CASE("a constant rate follows its warm-up", "[schedule]") {
  const ScheduleOptions options{.kind = ScheduleKind::kConstant, .lr = 0.5, .warmup_steps = 4};
  REQUIRE(learning_rate(options, 0) == 0.0);
  REQUIRE(learning_rate(options, 3) == 0.375);
  REQUIRE(learning_rate(options, 4) == 0.5);
  REQUIRE(learning_rate(options, 1000000) == 0.5);
}

TEST_CASE("a constant rate falls to its floor over the last steps", "[schedule]") {
  ScheduleOptions options{.kind = ScheduleKind::kConstant,
                          .lr = 0.5,
                          .lr_min = 0.1,
                          .warmup_steps = 4,
                          .total_steps = 120,
                          .cooldown_steps = 100,
                          .cooldown = Cooldown::kLinear};
  REQUIRE(learning_rate(options, 3) == 0.375);
  REQUIRE(learning_rate(options, 19) == 0.5);
  REQUIRE(learning_rate(options, 20) == 0.5);
  REQUIRE(learning_rate(options, 45) == Approx(0.4).epsilon(1e-14));
  REQUIRE(learning_rate(options, 119) == Approx(0.104).epsilon(1e-14));
  REQUIRE(learning_rate(options, 120) == 0.1);
  REQUIRE(learning_rate(options, 1000) == 0.1);
  options.cooldown = Cooldown::kSqrt;
  REQUIRE(learning_rate(options, 20) == 0.5);
  REQUIRE(learning_rate(options, 45) == Approx(0.3).epsilon(1e-14));  // half of it in a quarter
  REQUIRE(learning_rate(options, 84) == Approx(0.18).epsilon(1e-14));
  REQUIRE(learning_rate(options, 120) == 0.1);
}

TEST_CASE("a cool-down needs an end, a constant rate and room after the warm-up", "[schedule]") {
  ScheduleOptions options{.kind = ScheduleKind::kConstant, .warmup_steps = 10};
  const auto message = [&] {
    try {
      options.validate("s");
      check_end(options, "s");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE(message() == "none");  // no end is needed without one
  options.cooldown_steps = 90;
  REQUIRE_THAT(message(), ContainsSubstring("s.total_steps"));
  options.total_steps = 100;
  REQUIRE(message() == "none");
  options.total_steps = 99;
  REQUIRE_THAT(message(), ContainsSubstring("s.cooldown_steps"));
  options.kind = ScheduleKind::kCosine;
  REQUIRE_THAT(message(), ContainsSubstring("s.cooldown_steps"));
  options.cooldown_steps = 0;
  REQUIRE(message() == "none");  // cosines end before their warm-up in runs of a few steps
}

TEST_CASE("rollouts grow after every so many epochs up to the maximum", "[schedule]") {
  using Lengths = std::vector<int64_t>;
  REQUIRE(lengths({1, 1, 4}, 6) == Lengths{1, 2, 3, 4, 4, 4});
  REQUIRE(lengths({1, 2, 3}, 7) == Lengths{1, 1, 2, 2, 3, 3, 3});
  REQUIRE(lengths({2, 3, 12}, 8) == Lengths{2, 2, 2, 3, 3, 3, 4, 4});
  REQUIRE(lengths({1, 0, 5}, 4) == Lengths{1, 1, 1, 1});
}

TEST_CASE("rollouts grow after every so many optimiser steps, whatever the epoch", "[schedule]") {
  const RolloutOptions options{.start = 2, .maximum = 4, .step_increment = 10};
  for (const int64_t epoch : {0, 7}) {
    for (int64_t step = 0; step < 10; ++step)
      REQUIRE(rollout_at(options, epoch, step) == 2);
    for (int64_t step = 10; step < 20; ++step)
      REQUIRE(rollout_at(options, epoch, step) == 3);
    REQUIRE(rollout_at(options, epoch, 20) == 4);
    REQUIRE(rollout_at(options, epoch, 1000000) == 4);
  }
}

TEST_CASE("the longest rollout of a run is the one of its last step", "[schedule]") {
  const RolloutOptions by_epoch{.start = 1, .epoch_increment = 2, .maximum = 9};
  REQUIRE(longest_rollout(by_epoch, 4, 0) == 2);
  REQUIRE(longest_rollout(by_epoch, 5, 0) == 3);
  REQUIRE(longest_rollout(by_epoch, 0, 5) == 9);  // how many epochs these are is not known
  const RolloutOptions by_step{.start = 1, .maximum = 9, .step_increment = 100};
  REQUIRE(longest_rollout(by_step, 0, 100) == 1);
  REQUIRE(longest_rollout(by_step, 0, 101) == 2);
  REQUIRE(longest_rollout(by_step, 1, 0) == 9);
  REQUIRE(longest_rollout({.start = 3, .maximum = 9}, 1, 1) == 3);
}

TEST_CASE("a rollout grows by epochs or by steps, not by both", "[schedule]") {
  const RolloutOptions both{.start = 1, .epoch_increment = 1, .maximum = 3, .step_increment = 5};
  REQUIRE_THROWS_WITH(both.validate("train.rollout"),
                      ContainsSubstring("'train.rollout.step_increment'"));
  REQUIRE_NOTHROW(RolloutOptions{.maximum = 3, .step_increment = 5}.validate("train.rollout"));
}

TEST_CASE("a rollout that starts above its maximum is refused", "[schedule]") {
  const RolloutOptions options{3, 1, 2};
  REQUIRE_THROWS_AS(options.validate("train.rollout"), ConfigError);
}
