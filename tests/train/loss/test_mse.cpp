// SPDX-License-Identifier: Apache-2.0
#include "train/loss/mse.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.h"
#include "train/loss/loss.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("the root is taken of the mean of all squares, not point by point", "[mse]") {
  const at::Tensor error = at::tensor({3.0, 5.0}, at::kDouble).reshape({1, 1, 1, 1, 2});
  const auto loss_of = [&](const PointwiseError& kind) {
    return PointwiseLoss{.error = kind}(error, at::zeros_like(error)).item<double>();
  };
  REQUIRE(loss_of(MseKind().error()) == Approx(17.0).epsilon(1e-15));
  REQUIRE(loss_of(RmseKind().error()) == Approx(std::sqrt(17.0)).epsilon(1e-15));
}
