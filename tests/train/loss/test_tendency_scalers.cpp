// SPDX-License-Identifier: Apache-2.0
#include "train/loss/tendency_scalers.h"

#include "tests/train/close_weights.h"
#include "train/loss/variable_scalers.h"

using namespace aifs;
using namespace aifs::train;
using test::general_weights;
using test::require_close;
using test::scaled_names;

TEST_CASE("tendency weights are the ratio of deviations for prognostic variables",
          "[tendency_scalers]") {
  const data::VariableTable variables(scaled_names(), {.forcing = {}, .diagnostic = {"q", "z"}});
  data::Statistics statistics, tendencies;
  statistics.stdev = {10, 10, 10, 1, 1, 1, 2};
  tendencies.stdev = {5, 5, 5, 1, 1, 8.6, 1};
  const at::Tensor general = variable_weights(scaled_names(), general_weights());
  require_close(general * tendency_weights(variables, statistics, tendencies, 1, false),
                {1, 1, 1, 1, 0.1, 11.6279, 2});
  require_close(general * tendency_weights(variables, statistics, tendencies, 2, false),
                {2, 2, 2, 1, 0.1, 1.35208, 4});
  // Anemoi's release forgets the variable in dataset column 0.
  require_close(tendency_weights(variables, statistics, tendencies, 1, true),
                {1, 2, 2, 1, 1, 1 / 8.6, 2});
  tendencies.stdev[6] = 0.0;
  REQUIRE_THROWS_WITH(tendency_weights(variables, statistics, tendencies, 1, false),
                      ContainsSubstring("variable 'd' has stdev 2, and 0 among"));
}
