// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scalers.h"

#include <ATen/ATen.h>

#include "tests/train/close_weights.h"

using namespace aifs;
using namespace aifs::train;
using test::require_close;

TEST_CASE("norms divide by sum or mean", "[scalers]") {
  const at::Tensor weights = at::tensor({1.0f, 2.0f, 5.0f});
  require_close(normalise_weights(weights, WeightNorm::kUnitSum), {0.125, 0.25, 0.625}, 1e-7);
  require_close(normalise_weights(weights, WeightNorm::kUnitMean), {0.375, 0.75, 1.875}, 1e-7);
  REQUIRE(at::equal(normalise_weights(weights, WeightNorm::kNone), weights));
}

TEST_CASE("a scaler spans its axes and knows them, also where a field has size one", "[scalers]") {
  const Scaler mask = over_axes("mask", at::ones({2, 1, 4}), {kBatch, kGrid, kVariable});
  REQUIRE(mask.factor.sizes() == at::IntArrayRef{2, 1, 1, 1, 4});
  REQUIRE(mask.acts_on(kGrid));
  REQUIRE_FALSE(mask.acts_on(kTime));
  const Scaler time = over_axis("time", at::ones({1}), kTime);
  REQUIRE(time.factor.sizes() == at::IntArrayRef{1, 1, 1, 1, 1});
  REQUIRE(time.acts_on(kTime));
  REQUIRE_THROWS_WITH(over_axes("mask", at::ones({2, 3}), {kGrid}), ContainsSubstring("'mask'"));
}
