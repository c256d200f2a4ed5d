// SPDX-License-Identifier: Apache-2.0
#include "train/loss/pointwise_error.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("the usual error of a point is its square, which a kernel may compute",
          "[pointwise_error]") {
  const PointwiseError error = mse_error();
  REQUIRE(
      error.of(at::tensor({-3.0, 0.5}, at::kDouble)).equal(at::tensor({9.0, 0.25}, at::kDouble)));
  REQUIRE(error.is_square);
  REQUIRE_FALSE(error.takes_root);
}
