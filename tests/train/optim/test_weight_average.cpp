// SPDX-License-Identifier: Apache-2.0
#include "train/optim/weight_average.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

TEST_CASE("the first update copies the weights", "[weight_average]") {
  WeightAverage average(AverageKind::kExponential, 0.9);
  REQUIRE_FALSE(average.values().defined());
  const at::Tensor weights = random_tensor({5}, 1);
  average.update(weights);
  REQUIRE(at::equal(average.values(), weights));
  weights.zero_();
  REQUIRE(average.values().abs().max().item<double>() > 0.0);
}

TEST_CASE("an exponential average forgets by its decay", "[weight_average]") {
  WeightAverage average(AverageKind::kExponential, 0.9);
  at::Tensor expected = random_tensor({5}, 1);
  average.update(expected);
  for (uint64_t step = 2; step < 8; ++step) {
    const at::Tensor weights = random_tensor({5}, step);
    expected = 0.9 * expected + 0.1 * weights;
    average.update(weights);
  }
  REQUIRE(max_difference(average.values(), expected) <= 1e-15);
}

TEST_CASE("a mean weighs all updates alike", "[weight_average]") {
  WeightAverage average(AverageKind::kMean);
  at::Tensor sum = at::zeros({5}, at::kDouble);
  for (uint64_t step = 1; step < 8; ++step) {
    average.update(random_tensor({5}, step));
    sum += random_tensor({5}, step);
  }
  REQUIRE(average.num_updates() == 7);
  REQUIRE(max_difference(average.values(), sum / 7) <= 2e-15);
}
