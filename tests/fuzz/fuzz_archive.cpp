// SPDX-License-Identifier: Apache-2.0
// A zip archive that is mapped, each of whose members is read.
#include "core/zip_archive.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile memory(bytes, size);
  return fuzz::run(input, [&] {
    const ZipArchive archive(memory.path());
    for (const auto& [name, member] : archive.members()) {
      fuzz::run(input, [&] { archive.stored(name); });
      fuzz::run(input, [&] { archive.read(name, 1 << 20); });
    }
  });
}
