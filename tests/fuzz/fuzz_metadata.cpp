// SPDX-License-Identifier: Apache-2.0
// Metadata of arrays and groups, format 2 or 3 by the first byte; after a zero byte the content of
// the first chunk.
#include "data/zarr/array.h"
#include "data/zarr/node.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view input = fuzz::view_of(bytes, size);
  const bool is_v3 = bytes[0] % 2 == 1;
  const std::string rest = fuzz::text_of(bytes + 1, size - 1);
  const size_t end = rest.find('\0');
  const std::string json = rest.substr(0, end);
  const auto store = std::make_shared<zarr::MemoryStore>("fuzz");
  store->put(is_v3 ? "data/zarr.json" : "data/.zarray", json);
  store->put(is_v3 ? "zarr.json" : ".zattrs", json);
  if (!is_v3) store->put(".zgroup", json);
  fuzz::run(input, [&] { zarr::read_root_group(*store); });
  return fuzz::run(input, [&] {
    const auto meta = zarr::read_array_meta(*store, "data");
    constexpr int64_t kMostBytes = 1 << 20;
    if (!meta || end == std::string::npos || meta->chunk_bytes() > kMostBytes) return;
    const std::vector<int64_t> first(meta->shape.size(), 0);
    store->put("data/" + meta->keys.key(first), rest.substr(end + 1));
    zarr::ChunkScratch scratch;
    zarr::Array(store, "data").decode_chunk(first, {}, scratch);
  });
}
