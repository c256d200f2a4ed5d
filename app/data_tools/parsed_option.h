// SPDX-License-Identifier: Apache-2.0
// Texts of the command line that mean something: dates, durations, names of grids.
#pragma once

#include <string>

#include "core/check.h"

namespace aifs::app {

// Returns what `parse` does. Its Errors become a ConfigError of the option, with their hint, or
// with `hint` if they have none.
template <class Parse>
auto parsed(const char* option, Parse&& parse, const std::string& hint = {}) {
  try {
    return parse();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(option, error.what(), error.hint().empty() ? hint : error.hint());
  }
}

}  // namespace aifs::app
