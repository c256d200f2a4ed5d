// SPDX-License-Identifier: Apache-2.0
// For test cases on the full reference data, which only some machines have. Their tag is
// [full_reference]: ctest runs them apart, as NAME.reference, and counts that as skipped without
// the data (FULL_REFERENCE in cmake/AifsModule.cmake).
#pragma once

#include <cstdio>
#include <cstdlib>

#include "tests/support/paths.h"

namespace aifs::test {

// The folder of the data; where there is none the program ends as "skipped".
inline std::filesystem::path full_reference() {
  constexpr int kSkipped = 77;  // SKIP_RETURN_CODE
  if (const auto folder = shared_folder()) return *folder;
  std::puts("skipped: AIFS_SHARED does not name the full reference data");
  std::fflush(stdout);
  std::_Exit(kSkipped);
}

}  // namespace aifs::test
