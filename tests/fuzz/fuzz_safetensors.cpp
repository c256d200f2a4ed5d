// SPDX-License-Identifier: Apache-2.0
// A file of tensors, each of which is read.
#include "core/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile memory(bytes, size);
  return fuzz::run(input, [&] {
    const SafetensorsFile file(memory.path());
    for (const std::string& name : file.names()) {
      fuzz::run(input, [&] { file.doubles(name); });
      fuzz::run(input, [&] { file.integers(name); });
    }
  });
}
