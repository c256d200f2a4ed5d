// SPDX-License-Identifier: Apache-2.0
// The text of a configuration.
#include "app/run_config.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  return fuzz::run([&] { app::parse_config(fuzz::text_of(bytes, size), {}); });
}
