// SPDX-License-Identifier: Apache-2.0
// What all harnesses of this folder share: bytes go in, and nothing may come out but a result or an
// error in the program's own words. Built with libFuzzer by tools/fuzz, and with replay.cpp (the
// files of corpus/, and changes of them) for ctest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "core/check.h"

namespace aifs::fuzz {

// Whatever the input, `work` ends, or throws an Error whose text is no library's.
template <class Work>
int run(Work&& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    const std::string_view what = error.what();
    if (what.find("json.exception") != std::string_view::npos) {
      std::cerr << "a library's words: " << what << "\n";
      std::abort();
    }
  } catch (const DataError& error) {
    const std::string_view what = error.what();
    if (what.find("json.exception") != std::string_view::npos) {
      std::cerr << "a library's words: " << what << "\n";
      std::abort();
    }
  }
  return 0;
}

inline std::string text_of(const uint8_t* bytes, size_t size) {
  return size == 0 ? std::string() : std::string(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace aifs::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
