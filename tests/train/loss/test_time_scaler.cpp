// SPDX-License-Identifier: Apache-2.0
#include "train/loss/time_scaler.h"

#include "tests/train/close_weights.h"

using namespace aifs;
using namespace aifs::train;
using test::require_close;

TEST_CASE("time weights are those given, uniform by default", "[time_scaler]") {
  require_close(time_weights({}, 4), {0.25, 0.25, 0.25, 0.25}, 1e-7);
  require_close(time_weights({1, 3}, 2), {1, 3}, 1e-7);
  REQUIRE_THROWS_WITH(time_weights({1, 3}, 3), ContainsSubstring("'loss.time_weights'"));
}

TEST_CASE("the scaler without a name divides time weights by their sum", "[time_scaler]") {
  const data::VariableTable variables({"t"}, {});
  const data::Statistics statistics;
  const std::map<int64_t, data::Statistics> tendencies;
  const graph::NodeSet nodes;
  const LossInputs inputs{.variables = variables,
                          .statistics = statistics,
                          .tendencies = tendencies,
                          .nodes = nodes,
                          .times_out = 2};
  TimeStepsKind scaler;
  scaler.time_weights = {1, 3};
  require_close(scaler.make("times", {inputs, "loss"}).factor.flatten(), {1, 3}, 1e-7);
  scaler.become_unnamed();
  require_close(scaler.make("times", {inputs, "loss"}).factor.flatten(), {0.25, 0.75}, 1e-7);
}
