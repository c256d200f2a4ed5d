// SPDX-License-Identifier: Apache-2.0
// Ends a test program as "skipped".
#pragma once

#include <cstdio>
#include <cstdlib>

namespace aifs::test {

// Says why, and ends the program with the exit code of SKIP_RETURN_CODE in cmake/AifsModule.cmake.
[[noreturn]] inline void skip(const char* why) {
  std::printf("skipped: %s\n", why);
  std::fflush(stdout);
  std::_Exit(77);
}

}  // namespace aifs::test
