// SPDX-License-Identifier: Apache-2.0
#include "train/output/appended_text.h"

#include "tests/support/catch.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/paths.h"

using namespace aifs;
using train::AppendedText;

TEST_CASE("a text goes behind the head of a new file, and behind what is there",
          "[appended_text]") {
  const test::TemporaryFolder folder;
  AppendedText file(folder.path() / "f");
  file.append("a\n", "head\n");
  file.append("b\n", "head\n");
  REQUIRE(read_file(file.path()) == "head\na\nb\n");
  REQUIRE(file.num_failures() == 0);
}

TEST_CASE("a full disk costs the texts that did not fit, whole, and no more", "[appended_text]") {
  const test::TemporaryFolder folder;
  AppendedText file(folder.path() / "f");
  file.append("first\n");
  {
    const test::FileSizeLimit limit(8);
    file.append("second\n");
    file.append("third\n");
  }
  REQUIRE(file.num_failures() == 2);
  REQUIRE(read_file(file.path()) == "first\n");
  file.append("fourth\n");
  REQUIRE(read_file(file.path()) == "first\nfourth\n");
}
