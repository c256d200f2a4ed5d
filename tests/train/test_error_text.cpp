// SPDX-License-Identifier: Apache-2.0
#include "train/error_text.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <new>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using train::error_text;
using train::is_out_of_memory;

TEST_CASE("memory that cannot be had is called so, whoever says it", "[error_text]") {
  REQUIRE(error_text(std::bad_alloc()) == "out of memory");
  try {
    at::empty({int64_t{1} << 60}, at::kByte);
    FAIL("no error");
  } catch (const std::exception& error) {
    INFO(error.what());
    REQUIRE(is_out_of_memory(error));
    REQUIRE(error_text(error) == "out of memory");
  }
}

TEST_CASE("messages come without backtraces and words of libraries", "[error_text]") {
  REQUIRE(error_text(DataError("'x' is missing", "look elsewhere")) == "'x' is missing");
  try {
    at::zeros({2, 3}) + at::zeros({4, 5});
    FAIL("no error");
  } catch (const std::exception& error) {
    REQUIRE_FALSE(is_out_of_memory(error));
    REQUIRE_THAT(error_text(error), ContainsSubstring("size") && !ContainsSubstring("frame #"));
  }
  try {
    static_cast<void>(std::filesystem::file_size("/nowhere/at/all"));
    FAIL("no error");
  } catch (const std::exception& error) {
    REQUIRE_THAT(error_text(error), ContainsSubstring("cannot examine '/nowhere/at/all'") &&
                                        !ContainsSubstring("filesystem error"));
  }
}
