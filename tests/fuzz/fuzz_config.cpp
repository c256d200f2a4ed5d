// SPDX-License-Identifier: Apache-2.0
// The text of a configuration.
#include "app/run/run_config.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  return fuzz::run(input, [&] { app::parse_config(std::string(input), {}); });
}
