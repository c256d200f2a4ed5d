// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("a failed check carries the message, the expression and the place", "[check]") {
  const int n = -1;
  try {
    AIFS_CHECK(n > 0, "n is ", n);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("n is -1 [n > 0 at core/test_check.cpp:"));
  }
}

TEST_CASE("a configuration error names its path", "[check]") {
  const ConfigError error("graph.hidden", "no such mesh", "write tri");
  REQUIRE(std::string(error.what()) == "'graph.hidden': no such mesh");
  REQUIRE(error.hint() == "write tri");
}

TEST_CASE("edit distance counts inserts, deletes, replacements and swaps", "[check]") {
  REQUIRE(edit_distance("", "abc") == 3);
  REQUIRE(edit_distance("t_850", "t_850") == 0);
  REQUIRE(edit_distance("chanels", "channels") == 1);
  REQUIRE(edit_distance("hcannels", "channels") == 1);
  REQUIRE(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("near names come best first", "[check]") {
  const std::vector<std::string> known{"msl", "t_850", "t_500", "u_850"};
  REQUIRE(nearest_names("t_85", known, 2) == "nearest: 't_850', 'u_850'");
  REQUIRE(nearest_names("x", std::vector<std::string>{}) == "");
}
