// SPDX-License-Identifier: Apache-2.0
#include "train/loss/grid_scalers.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("masked nodes share a fixed part of the weight", "[grid_scalers]") {
  const at::Tensor weights = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kFloat);
  const at::Tensor mask = at::tensor({1, 1, 0, 0}, at::kByte).to(at::kBool);
  const at::Tensor result =
      normalise_weights(reweighted_nodes(weights, mask, 0.25), WeightNorm::kUnitSum);
  const at::Tensor expected = at::tensor({0.125, 0.125, 0.3214286, 0.4285714}, at::kFloat);
  REQUIRE((result - expected).abs().max().item<double>() <= 1e-7);
  REQUIRE_THROWS_AS(reweighted_nodes(weights, at::zeros({4}, at::kBool), 0.25), Error);
}

TEST_CASE("waves weigh the same, with sum 1 over the modes", "[grid_scalers]") {
  REQUIRE(at::equal(spectral_weights(4, 2), at::full({8}, 0.25, at::kFloat)));
}
