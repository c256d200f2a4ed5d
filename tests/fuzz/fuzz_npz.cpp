// SPDX-License-Identifier: Apache-2.0
// A file of NumPy arrays, read as a sparse matrix and as single arrays.
#include "core/npz.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile file(bytes, size);
  fuzz::run(input, [&] { read_sparse_npz(file.path()); });
  for (const char* array : {"data", "indices", "format"}) {
    fuzz::run(input, [&] { NpzFile(file.path()).numbers(array); });
    fuzz::run(input, [&] { NpzFile(file.path()).integers(array); });
    fuzz::run(input, [&] { NpzFile(file.path()).text(array); });
  }
  return 0;
}
