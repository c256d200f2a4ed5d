// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace aifs {

// Returns what a text says before its first line break: of an error of LibTorch without its list of
// calls.
inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace aifs
