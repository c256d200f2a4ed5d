// SPDX-License-Identifier: Apache-2.0
// Adds the name of a file to the errors of code that does not know it.
#pragma once

#include <string>
#include <utility>

#include "core/check.h"

namespace aifs::zarr {

// Returns what `body` returns. A DataError "reason" thrown by it becomes "'file': reason".
template <class Body>
auto in_file(const std::string& file, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const DataError& error) {
    throw DataError(concat("'", file, "': ", error.what()), error.hint());
  }
}

}  // namespace aifs::zarr
