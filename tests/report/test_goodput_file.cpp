// SPDX-License-Identifier: Apache-2.0
#include "report/goodput_file.h"

#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using report::read_goodput;

TEST_CASE("goodput.json is read, and said in a line", "[goodput_file]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "goodput.json";
  CHECK_FALSE(read_goodput(file));
  write_file_atomic(file, R"({"goodput": 0.8, "first_start": "2026-12-01T10:00:00", "starts": 2,
      "wall_s": 7380, "seconds": {"stepping": 5904, "waiting_for_data": 1,
      "validation": 738, "lost_work": 369, "other": 368}})");
  const auto goodput = read_goodput(file);
  REQUIRE(goodput);
  CHECK(goodput->seconds.size() == 5);
  CHECK(goodput->text() ==
        "80.0 % of 2 h 03 min, 2 starts; validation 10.0 %, lost work 5.0 %, other 5.0 %");
}

TEST_CASE("a damaged goodput.json is none", "[goodput_file]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "goodput.json";
  for (const char* text :
       {"", "[1]", R"({"goodput": 1, "wall_s": 0, "starts": 1, "seconds": {}})",
        R"({"goodput": 1, "wall_s": 9, "starts": 0, "seconds": {}})",
        R"({"goodput": 1, "wall_s": 9, "starts": 1, "seconds": {"stepping": "x"}})"}) {
    write_file_atomic(file, text);
    CHECK_FALSE(read_goodput(file));
  }
}
