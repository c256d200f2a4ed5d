// SPDX-License-Identifier: Apache-2.0
// For test cases on the full reference data, which only some machines have. Their tag is
// [full_reference]: ctest runs them apart, as NAME.reference, and counts that as skipped without
// the data (FULL_REFERENCE in cmake/AifsModule.cmake).
#pragma once

#include "tests/support/paths.h"
#include "tests/support/skip.h"

namespace aifs::test {

// The folder of the data; where there is none the program ends as "skipped".
inline std::filesystem::path full_reference() {
  if (const auto folder = shared_folder()) return *folder;
  skip("AIFS_SHARED does not name the full reference data");
}

}  // namespace aifs::test
