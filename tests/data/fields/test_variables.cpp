// SPDX-License-Identifier: Apache-2.0
#include "data/fields/variables.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

using Names = std::vector<std::string>;
using Columns = std::vector<int64_t>;

// The example of Anemoi's data indices.
const Names kNames{"z", "t", "lsm", "tp", "coslat", "q"};

VariableTable example() {
  return VariableTable(kNames, {.forcing = {"lsm", "coslat"}, .diagnostic = {"tp"}});
}

std::string error_of(const RoleOptions& roles) {
  try {
    const VariableTable table(kNames, roles);
  } catch (const ConfigError& error) {
    return std::string(error.what()) + " / " + error.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the numberings of inputs and outputs follow the dataset order", "[variables]") {
  const VariableTable table = example();
  REQUIRE(table.input_names() == Names{"z", "t", "lsm", "coslat", "q"});
  REQUIRE(table.output_names() == Names{"z", "t", "tp", "q"});
  REQUIRE(table.input_columns() == Columns{0, 1, 2, 4, 5});
  REQUIRE(table.output_columns() == Columns{0, 1, 3, 5});
  REQUIRE(table.input_prognostic() == Columns{0, 1, 4});
  REQUIRE(table.output_prognostic() == Columns{0, 1, 3});
  REQUIRE(table.prognostic_columns() == Columns{0, 1, 5});
  REQUIRE(table.input_forcing() == Columns{2, 3});
  REQUIRE(table.forcing_columns() == Columns{2, 4});
  REQUIRE(table.role(3) == Role::kDiagnostic);
  REQUIRE(table.find_output("tp") == 2);
  REQUIRE(table.find_output("lsm") == -1);
}

TEST_CASE("prognostic positions of inputs and outputs name the same variables", "[variables]") {
  const VariableTable table = example();
  REQUIRE(table.num_prognostic() == 3);
  for (size_t k = 0; k < 3; ++k) {
    const auto in = static_cast<size_t>(table.input_prognostic()[k]);
    const auto out = static_cast<size_t>(table.output_prognostic()[k]);
    REQUIRE(table.input_names()[in] == table.output_names()[out]);
  }
}

TEST_CASE("the order in which roles are listed does not matter", "[variables]") {
  const VariableTable table(kNames, {.forcing = {"coslat", "lsm"}, .diagnostic = {"tp"}});
  REQUIRE(table.input_forcing() == example().input_forcing());
  REQUIRE(table.input_columns() == example().input_columns());
}

TEST_CASE("impossible roles are refused by name", "[variables]") {
  REQUIRE_THAT(error_of({.forcing = {"lms"}, .diagnostic = {}}),
               ContainsSubstring("'data.forcing': the dataset has no variable 'lms' / nearest: "
                                 "'lsm'"));
  REQUIRE_THAT(error_of({.forcing = {"lsm", "lsm"}, .diagnostic = {}}),
               ContainsSubstring("'data.forcing': variable 'lsm' already has a role"));
  REQUIRE_THAT(error_of({.forcing = {"tp"}, .diagnostic = {"tp"}}),
               ContainsSubstring("'data.diagnostic': variable 'tp' already has a role"));
  REQUIRE_THAT(error_of({.forcing = kNames, .diagnostic = {}}),
               ContainsSubstring("nothing is left to predict"));
}

TEST_CASE("a level is a suffix of digits after a parameter", "[variables]") {
  const auto split = [](const std::string& name) {
    const VariableName parts = split_variable_name(name);
    return std::make_pair(parts.parameter, parts.level);
  };
  using Parts = std::pair<std::string, int64_t>;
  REQUIRE(split("t_850") == Parts{"t", 850});
  REQUIRE(split("u_component_10") == Parts{"u_component", 10});
  for (const char* whole : {"2t", "10u", "cos_latitude", "q_", "_5", "t_850hPa", "t850", ""}) {
    INFO(whole);
    REQUIRE(split(whole) == Parts{whole, -1});
  }
}
