// SPDX-License-Identifier: Apache-2.0
#include "verify/table_text.h"

#include "tests/support/catch.h"

using namespace aifs::verify;

TEST_CASE("tables show four lead times at most, evenly spread up to the last", "[table_text]") {
  REQUIRE(shown_lead_times(0).empty());
  REQUIRE(shown_lead_times(3) == std::vector<size_t>{0, 1, 2});
  REQUIRE(shown_lead_times(40) == std::vector<size_t>{9, 19, 29, 39});
}

TEST_CASE("cells are as wide as they must be", "[table_text]") {
  REQUIRE(padded("ab", 4) == "ab  ");
  REQUIRE(padded("abcdef", 4) == "abcdef");
  REQUIRE(formatted("%5.1f%%", 12.34) == " 12.3%");
}
