// SPDX-License-Identifier: Apache-2.0
// A zip file as a store: its directory, and every member whole, in a range and by name.
#include "data/zarr/zip_directory.h"
#include "data/zarr/zip_store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace aifs;

namespace {

constexpr size_t kMostBytes = 1 << 20;  // of one value: enough for all that a directory can claim

std::string folder_of(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == std::string::npos ? std::string() : key.substr(0, slash);
}

// Reads a member in each way that a store offers; they must agree.
void read_member(const zarr::ZipStore& store, const std::string& key, std::string_view input) {
  const auto size = store.size(key);
  AIFS_CHECK(size.has_value(), "a listed member has no size");
  fuzz::run(input, [&] { store.names_below(folder_of(key)); });
  zarr::Buffer whole, part;
  fuzz::run(input, [&] {
    if (!store.get(key, kMostBytes, whole)) return;
    AIFS_CHECK(whole.size() == *size, whole.size(), " bytes of ", *size);
  });
  if (*size > kMostBytes) return;
  fuzz::run(input, [&] {
    const size_t begin = *size / 3, length = *size / 2;
    store.get_range(key, begin, length, part);
    AIFS_CHECK(part.size() == length, part.size(), " bytes of ", length);
  });
  fuzz::run(input, [&] {
    const auto value = store.open(key);
    AIFS_CHECK(value && value->size() == *size, "an open member has another size");
    part.resize(*size);
    value->read(0, *size, part.data());
    value->read(*size, 1, part.data());  // beyond the end
    AIFS_CHECK(false, "a member was read beyond its end");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input = fuzz::view_of(bytes, size);
  const fuzz::MemoryFile file(bytes, size);
  const std::string path = file.path().string();
  return fuzz::run(input, [&] {
    const auto value = zarr::open_file(path);
    const auto members = zarr::read_zip_directory(*value, path);
    for (const auto& [key, member] : members) {
      fuzz::run(input, [&, &name = key, &entry = member] {
        const uint64_t begin = zarr::zip_data_offset(*value, path, name, entry);
        AIFS_CHECK(begin <= size && entry.packed <= size - begin, "a member outside the file");
      });
    }
    const zarr::ZipStore store(path);
    store.root_names();
    for (const auto& [key, member] : members)
      read_member(store, key, input);
  });
}
