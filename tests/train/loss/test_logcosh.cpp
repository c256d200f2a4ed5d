// SPDX-License-Identifier: Apache-2.0
#include "train/loss/logcosh.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

TEST_CASE("the logarithm of cosh is exact where cosh overflows, too", "[logcosh]") {
  const auto at_error = [](double d) {
    return LogCoshKind().error().of(at::full({}, d, at::kDouble)).item<double>();
  };
  for (const double d : {-3.0, -0.5, 0.7, 20.0})
    REQUIRE(at_error(d) == Approx(std::log(std::cosh(d))).epsilon(1e-14));
  REQUIRE(at_error(0.0) == Approx(0.0).margin(1e-16));
  REQUIRE(at_error(-1e4) == Approx(1e4 - std::numbers::ln2).epsilon(1e-15));  // cosh is infinite
}
