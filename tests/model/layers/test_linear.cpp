// SPDX-License-Identifier: Apache-2.0
#include "model/layers/linear.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::max_difference;
using aifs::test::random_tensor;

TEST_CASE("a linear map is W x + b, or W x", "[linear]") {
  ParameterSet parameters(at::kDouble, 1);
  const ParameterScope root(parameters);
  const Linear with(root / "a", 3, 2), without(root / "b", 3, 2, /*with_bias=*/false);
  const at::Tensor x = random_tensor({4, 3}, 1);
  REQUIRE(max_difference(with.forward(x), at::mm(x, with.weight.t()) + with.bias) <= 1e-15);
  REQUIRE(max_difference(without.forward(x), at::mm(x, without.weight.t())) <= 1e-15);
  REQUIRE_FALSE(parameters.contains("b.bias"));
}

TEST_CASE("weights start within one over the root of the inputs, or at zero", "[linear]") {
  ParameterSet parameters(at::kDouble, 1);
  const Linear random(ParameterScope(parameters) / "a", 16, 64);
  const Linear zero(ParameterScope(parameters) / "b", 16, 64, true, LinearStart::kZeros);
  const auto largest = [](const at::Tensor& t) { return t.abs().max().item<double>(); };
  REQUIRE(largest(random.weight) <= 0.25);
  REQUIRE(largest(random.weight) > 0.24);
  REQUIRE(largest(random.bias) > 0.2);
  REQUIRE(largest(zero.weight) + largest(zero.bias) == 0.0);
}
