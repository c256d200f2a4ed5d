// SPDX-License-Identifier: Apache-2.0
#include "report/short_names.h"

#include <filesystem>

#include "tests/support/catch.h"

using namespace aifs::report;

TEST_CASE("folders are called by their last part, or by their path where that is not enough",
          "[short_names]") {
  using Names = std::vector<std::string>;
  CHECK(short_names({"runs/a", "runs/b/"}) == Names{"a", "b"});
  CHECK(short_names({"x/a", "y/a", "y/b"}) == Names{"x/a", "y/a", "b"});
  CHECK(short_names({"."}) == Names{std::filesystem::current_path().filename().string()});
}
