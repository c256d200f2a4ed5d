// SPDX-License-Identifier: Apache-2.0
// The content of a shard: index at the end or, by the first byte, at the start; with a checksum or
// without one.
#include "data/zarr/array.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

namespace {

std::string metadata(bool at_start, bool has_checksum) {
  return concat(
      R"({"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "float32",)",
      R"("chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},)",
      R"("chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},)",
      R"("fill_value": 0.0, "attributes": {},)",
      R"("codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3],)",
      R"("codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd",)",
      R"("configuration": {"level": 1, "checksum": false}}], "index_codecs": [{"name": "bytes",)",
      R"("configuration": {"endian": "little"}})", has_checksum ? R"(, {"name": "crc32c"})" : "",
      R"(], "index_location": ")", at_start ? "start" : "end", R"("}}]})");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view input = fuzz::view_of(bytes, size);
  const auto store = std::make_shared<zarr::MemoryStore>("fuzz");
  store->put("data/zarr.json", metadata(bytes[0] % 2 == 1, bytes[0] / 2 % 2 == 1));
  store->put("data/c/0/0", fuzz::text_of(bytes + 1, size - 1));
  return fuzz::run(input, [&] {
    const zarr::Array array(store, "data");
    array.read<float>(zarr::Region::whole(array.meta().shape), zarr::AbsentChunk::kFill);
  });
}
