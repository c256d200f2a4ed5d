// SPDX-License-Identifier: Apache-2.0
// What forecasts are, is tested with the program (tests/app/forecast_tools).
#include "forecast/forecast_run.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("outputs are chosen by name, in the order of the user, each once", "[forecast_run]") {
  const data::VariableTable variables({"a", "b", "c", "d"}, {{"a"}, {"d"}});
  using Positions = std::vector<int64_t>;
  REQUIRE(forecast::chosen_outputs(variables, {}) == Positions{0, 1, 2});
  REQUIRE(forecast::chosen_outputs(variables, {"d", "b", "d"}) == Positions{2, 0});
  REQUIRE_THROWS_WITH(forecast::chosen_outputs(variables, {"b", "a"}),
                      ContainsSubstring("--variables") && ContainsSubstring("no output 'a'"));
}

TEST_CASE("a single rank has its forecasts at hand", "[forecast_run]") {
  REQUIRE(forecast::writes_forecasts(parallel::ProcessMesh()));
}
