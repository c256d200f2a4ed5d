// SPDX-License-Identifier: Apache-2.0
#include "verify/field_scores.h"

#include <cmath>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::verify;

TEST_CASE("scores of a single forecast are weighted means of its errors", "[field_scores]") {
  const std::vector<float> forecast{1, 5, 9, 100}, truth{2, 3, 9, 0}, start{0, 3, 5, 0};
  const std::vector<double> weights{1, 2, 1, 0};
  const auto scores = score_field({forecast, truth, start}, weights);
  REQUIRE(scores->squared_error == Approx((1 + 2 * 4 + 0) / 4.0));
  REQUIRE(scores->error == Approx((-1 + 2 * 2 + 0) / 4.0));
  REQUIRE(scores->absolute_error == Approx((1 + 2 * 2 + 0) / 4.0));
  REQUIRE(scores->crps == Approx(scores->absolute_error));
  REQUIRE(scores->persistence_squared_error == Approx((4 + 0 + 16) / 4.0));
  // Means 5 and 4.25.
  REQUIRE(scores->activity == Approx((16 + 0 + 16) / 4.0));
  REQUIRE(scores->truth_activity == Approx((1 * 5.0625 + 2 * 1.5625 + 22.5625) / 4.0));
  REQUIRE(scores->spread == 0.0);
}

TEST_CASE("scores of ensembles agree with their definitions, pair by pair", "[field_scores]") {
  constexpr size_t kMembers = 5, kCells = 7;
  const CounterRng random(3);
  std::vector<float> forecast, truth, start(kCells, 0.0f);
  for (size_t i = 0; i < kMembers * kCells; ++i)
    forecast.push_back(static_cast<float>(random.normal(i)));
  for (size_t i = 0; i < kCells; ++i)
    truth.push_back(static_cast<float>(random.normal(100 + i)));
  const std::vector<double> weights(kCells, 0.5);
  double crps = 0.0, spread = 0.0, squares = 0.0;
  for (size_t i = 0; i < kCells; ++i) {
    const auto member = [&](size_t e) { return static_cast<double>(forecast[e * kCells + i]); };
    double mean = 0.0, near = 0.0, apart = 0.0, variance = 0.0;
    for (size_t e = 0; e < kMembers; ++e) {
      mean += member(e) / kMembers;
      near += std::abs(member(e) - static_cast<double>(truth[i])) / kMembers;
      for (size_t f = 0; f < kMembers; ++f)
        apart += std::abs(member(e) - member(f));
    }
    for (size_t e = 0; e < kMembers; ++e)
      variance += (member(e) - mean) * (member(e) - mean) / (kMembers - 1);
    crps += (near - apart / (2.0 * kMembers * (kMembers - 1))) / kCells;
    spread += variance / kCells;
    squares += std::pow(mean - static_cast<double>(truth[i]), 2) / kCells;
  }
  const auto scores = score_field({forecast, truth, start}, weights);
  REQUIRE(scores->crps == Approx(crps).epsilon(1e-12));
  REQUIRE(scores->spread == Approx(spread).epsilon(1e-12));
  REQUIRE(scores->squared_error == Approx(squares).epsilon(1e-12));
}

TEST_CASE("cells without a value do not count", "[field_scores]") {
  const std::vector<float> forecast{NAN, 5, 1, 2}, truth{2, NAN, 2, 2}, start{0, 3, 0, NAN};
  const auto scores = score_field({forecast, truth, start}, std::vector<double>{1, 1, 1, 1});
  REQUIRE(scores->squared_error == 1.0);
  REQUIRE_FALSE(score_field({forecast, truth, start}, std::vector<double>{1, 1, 0, 1}));
}

TEST_CASE("what of a region counts is its coverage", "[field_scores]") {
  const std::vector<float> forecast{1, 2, 3}, truth{1, NAN, 3}, start{0, 0, 0};
  const auto scores = score_field({forecast, truth, start}, std::vector<double>{1, 3, 4});
  REQUIRE(scores->coverage == Approx(5.0 / 8.0));
}

TEST_CASE("anomalies correlate over the cells, less their means", "[field_scores]") {
  const std::vector<float> usual{5, 6, 7, 8}, forecast{6, 8, 10, 9}, truth{7, 7, 11, 8};
  const std::vector<float> start(4, 0.0f);
  const std::vector<double> weights{1, 2, 3, 4};
  double f = 0, t = 0, ff = 0, tt = 0, ft = 0, climatology = 0;
  for (size_t i = 0; i < 4; ++i) {  // two passes: means first
    f += weights[i] / 10 * static_cast<double>(forecast[i] - usual[i]);
    t += weights[i] / 10 * static_cast<double>(truth[i] - usual[i]);
  }
  for (size_t i = 0; i < 4; ++i) {
    const double a = static_cast<double>(forecast[i] - usual[i]) - f;
    const double b = static_cast<double>(truth[i] - usual[i]) - t;
    ff += weights[i] * a * a, tt += weights[i] * b * b, ft += weights[i] * a * b;
    climatology += weights[i] / 10 * std::pow(static_cast<double>(truth[i] - usual[i]), 2);
  }
  const auto scores = score_field({forecast, truth, start, usual}, weights);
  REQUIRE(scores->anomaly_correlation == Approx(ft / std::sqrt(ff * tt)).epsilon(1e-12));
  REQUIRE(scores->climatology_squared_error == Approx(climatology).epsilon(1e-12));
  const auto perfect = score_field({truth, truth, start, usual}, weights);
  REQUIRE(perfect->anomaly_correlation == Approx(1.0).epsilon(1e-12));
  // A forecast of the climatology has no anomalies.
  REQUIRE(std::isnan(score_field({usual, truth, start, usual}, weights)->anomaly_correlation));
}

TEST_CASE("ranks count the members below the truth, equal ones on both sides", "[field_scores]") {
  // Members 1, 2, 3 everywhere; truth below all, between, above all, equal to the middle one.
  const std::vector<float> forecast{3, 3, 3, 3, 1, 1, 1, 1, 2, 2, 2, 2}, truth{0, 2.5, 9, 2};
  const std::vector<float> start(4, 0.0f);
  const auto scores = score_field({forecast, truth, start}, std::vector<double>{1, 2, 3, 4});
  REQUIRE(scores->ranks.size() == 4);
  REQUIRE(scores->ranks[0] == Approx(0.1));
  REQUIRE(scores->ranks[1] == Approx(0.2));
  REQUIRE(scores->ranks[2] == Approx(0.2 + 0.2));
  REQUIRE(scores->ranks[3] == Approx(0.3));
}

TEST_CASE("means of scores count each field the same", "[field_scores]") {
  const std::vector<float> truth{0, 4}, start{0, 0}, first{1, 5}, second{3, 3};
  const std::vector<double> weights{1, 1}, thresholds{4.0};
  const auto a = score_field({first, truth, start}, weights, thresholds);
  const auto b = score_field({second, truth, start}, weights, thresholds);
  const std::vector<const FieldScores*> both{&*a, &*b};
  const FieldScores mean = mean_of(both);
  REQUIRE(mean.squared_error == Approx((1.0 + 5.0) / 2));
  REQUIRE(mean.events[0].hits == Approx(0.25));
  REQUIRE(mean.events[0].misses == Approx(0.25));
  REQUIRE(mean.events[0].correct_negatives == Approx(0.5));
}
