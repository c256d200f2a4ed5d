// SPDX-License-Identifier: Apache-2.0
#include "verify/thresholds.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using verify::parse_thresholds;

TEST_CASE("numbers belong to the variable before them", "[thresholds]") {
  const std::vector<std::string> variables{"2t", "tp", "msl"};
  const auto found = parse_thresholds({"tp=0.01", "0.001", "0.01", "2t=-5e1"}, variables, "");
  REQUIRE(found == std::vector<std::vector<double>>{{-50.0}, {0.001, 0.01}, {}});
  REQUIRE(parse_thresholds({}, variables, "").empty());
}

TEST_CASE("thresholds that mean nothing are refused", "[thresholds]") {
  const std::vector<std::string> variables{"2t", "tp"};
  for (const char* text : {"0.01", "tp=", "tp=x", "tp=1x", "tp=nan", "tp=0.1=2"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(parse_thresholds({text}, variables, "--thresholds"),
                        ContainsSubstring("'--thresholds'") && ContainsSubstring(text));
  }
  try {
    parse_thresholds({"tq=1"}, variables, "--thresholds");
    FAIL("an unknown variable was taken");
  } catch (const ConfigError& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("'tq'"));
    REQUIRE_THAT(error.hint(), ContainsSubstring("'tp'"));
  }
}
