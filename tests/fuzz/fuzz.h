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

// The bytes of one run.
inline std::string_view view_of(const uint8_t* bytes, size_t size) {
  return size == 0 ? std::string_view()
                   : std::string_view(reinterpret_cast<const char*>(bytes), size);
}

// Ends the program if a message is one of the JSON library. Messages quote the input, which may
// hold the words, too: libFuzzer puts them there, because it sees what is looked for.
inline void check_message(std::string_view message, std::string_view input) {
  constexpr std::string_view kLibrary = "json.exception";
  if (message.find(kLibrary) == std::string_view::npos) return;
  if (input.find(kLibrary) != std::string_view::npos) return;
  std::cerr << "a library's words: " << message << "\n";
  std::abort();
}

// Whatever the input, `work` ends, or throws an Error whose text is no library's.
template <class Work>
int run(std::string_view input, Work&& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    check_message(error.what(), input);
  } catch (const DataError& error) {
    check_message(error.what(), input);
  }
  return 0;
}

inline std::string text_of(const uint8_t* bytes, size_t size) {
  return std::string(view_of(bytes, size));
}

}  // namespace aifs::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
