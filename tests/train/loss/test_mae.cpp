// SPDX-License-Identifier: Apache-2.0
#include "train/loss/mae.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("the absolute error has slope 1 and -1, and 0 at 0", "[mae]") {
  const at::Tensor d = at::tensor({-2.0, 0.0, 3.0}, at::kDouble).set_requires_grad(true);
  const at::Tensor error = MaeKind().error().of(d);
  REQUIRE(error.equal(at::tensor({2.0, 0.0, 3.0}, at::kDouble)));
  error.sum().backward();
  REQUIRE(d.grad().equal(at::tensor({-1.0, 0.0, 1.0}, at::kDouble)));
}
