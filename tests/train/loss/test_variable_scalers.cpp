// SPDX-License-Identifier: Apache-2.0
#include "train/loss/variable_scalers.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/train/close_weights.h"

using namespace aifs;
using namespace aifs::train;
using test::require_close;

TEST_CASE("the default weight is that of the key default, or one", "[variable_scalers]") {
  require_close(variable_weights({"a", "t_850"}, {{"default", 3.0}, {"t", 2.0}}), {3, 2});
  require_close(variable_weights({"a"}, {}), {1});
  REQUIRE_THROWS_WITH(variable_weights({"t_850"}, {{"t_850", 2.0}}),
                      ContainsSubstring("'loss.variable_weights.t_850'"));
}

TEST_CASE("a variable mask is 0 where named and 1 elsewhere, or the opposite",
          "[variable_scalers]") {
  const std::vector<std::string> names{"a", "b", "c"};
  REQUIRE(at::equal(variable_mask(names, {"c", "a"}, false), at::tensor({0.0f, 1.0f, 0.0f})));
  REQUIRE(at::equal(variable_mask(names, {"c", "a"}, true), at::tensor({1.0f, 0.0f, 1.0f})));
  REQUIRE(at::equal(variable_mask({"q_50", "sp", "q_850"}, {"q"}, false),
                    at::tensor({0.0f, 1.0f, 0.0f})));
  REQUIRE_THROWS_WITH(variable_mask(names, {"x"}, false),
                      ContainsSubstring("'x' is not predicted"));
}
