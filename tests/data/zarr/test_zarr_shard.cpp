// SPDX-License-Identifier: Apache-2.0
// Shards written here byte by byte, with chunks in the file in a scrambled order.
#include "data/zarr/shard.h"

#include <zlib.h>

#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/rng.h"
#include "data/zarr/array.h"
#include "data/zarr/codec_crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

using Index = std::vector<int64_t>;

// A 7 x 10 array in shards of 4 x 6 with chunks of 2 x 3; item (i, j) is 100 i + j.
struct ShardSpec {
  bool index_at_start = false, checksum = true, compressed = false;
  std::vector<Index> absent = {};  // chunks of the array
};

std::string u64(uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

std::string chunk_bytes(int64_t chunk_i, int64_t chunk_j) {
  std::string bytes;
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      const auto value = static_cast<float>(100 * (2 * chunk_i + i) + 3 * chunk_j + j);
      bytes.append(static_cast<const char*>(static_cast<const void*>(&value)), 4);
    }
  }
  return bytes;
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string encoded(::deflateBound(&stream, plain.size()), '\0');
  stream.next_in =
      const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(plain.data())));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = static_cast<Bytef*>(static_cast<void*>(encoded.data()));
  stream.avail_out = static_cast<uInt>(encoded.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  encoded.resize(stream.total_out);
  ::deflateEnd(&stream);
  return encoded;
}

std::string shard_file(int64_t shard_i, int64_t shard_j, const ShardSpec& spec) {
  const size_t index_bytes = 4 * 16 + (spec.checksum ? 4 : 0);
  const size_t start = spec.index_at_start ? index_bytes : 0;
  std::string payload, entries[4];
  for (const int64_t k : {2, 0, 3, 1}) {  // any order will do
    const Index chunk{2 * shard_i + k / 2, 2 * shard_j + k % 2};
    if (std::find(spec.absent.begin(), spec.absent.end(), chunk) != spec.absent.end()) {
      entries[k] = u64(UINT64_MAX) + u64(UINT64_MAX);
      continue;
    }
    const std::string bytes = chunk_bytes(chunk[0], chunk[1]);
    payload += "gap";
    entries[k] = u64(start + payload.size()) + u64(bytes.size());
    payload += bytes;
  }
  std::string index = entries[0] + entries[1] + entries[2] + entries[3];
  if (spec.checksum) index += u64(crc32c(test::bytes_of(index))).substr(0, 4);
  const std::string file = spec.index_at_start ? index + payload : payload + index;
  return spec.compressed ? gzip(file) : file;
}

std::shared_ptr<MemoryStore> write(const ShardSpec& spec) {
  auto store = std::make_shared<MemoryStore>("memory");
  store->put("data/zarr.json",
             concat(R"({"zarr_format": 3, "node_type": "array", "shape": [7, 10],
      "data_type": "float32", "fill_value": "NaN", "chunk_key_encoding": "default",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
      "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3],
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}})",
                    spec.checksum ? R"(, "crc32c")" : "", R"(], "index_location": ")",
                    spec.index_at_start ? "start" : "end", R"("}})",
                    spec.compressed ? R"(, "gzip")" : "", "]}"));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 2; ++j)
      store->put(concat("data/c/", i, "/", j), shard_file(i, j, spec));
  }
  return store;
}

}  // namespace

TEST_CASE("every item of a sharded array is found, wherever the index lies", "[zarr][shard]") {
  for (const bool at_start : {false, true}) {
    for (const bool checksum : {false, true}) {
      for (const bool compressed : {false, true}) {
        const Array array(write({at_start, checksum, compressed}), "data");
        REQUIRE(array.grid().chunk_shape() == Index{2, 3});
        const auto values = array.read<float>(Region::whole({7, 10}), AbsentChunk::kError);
        for (int64_t k = 0; k < 70; ++k)
          REQUIRE(values[static_cast<size_t>(k)] == static_cast<float>(100 * (k / 10) + k % 10));
        REQUIRE(array.read<float>({{3, 5}, {5, 6}}) == std::vector<float>{305, 405});
      }
    }
  }
}

TEST_CASE("a chunk that is absent in its shard, and an absent shard, are the fill value",
          "[zarr][shard]") {
  const auto store = write({.absent = {{1, 2}}});
  const Array array(store, "data");
  REQUIRE(std::isnan(array.read<float>({{2, 6}, {3, 7}})[0]));
  REQUIRE_FALSE(std::isnan(array.read<float>({{2, 5}, {3, 6}})[0]));
  REQUIRE_THROWS_WITH(array.read<float>({{2, 6}, {3, 7}}, AbsentChunk::kError),
                      ContainsSubstring("memory/data/c/0/1") && ContainsSubstring("1.2"));
  store->erase("data/c/1/1");
  REQUIRE(std::isnan(Array(store, "data").read<float>({{6, 9}, {7, 10}})[0]));
}

TEST_CASE("a damaged index is an error that names the shard", "[zarr][shard]") {
  const auto good = write({});
  const std::string shard = good->values().at("data/c/0/0");
  const auto read_with = [&](const std::string& bytes) {
    auto store = std::make_shared<MemoryStore>(*good);
    store->put("data/c/0/0", bytes);
    return Array(store, "data").read<float>({{0, 0}, {4, 6}}, AbsentChunk::kError);
  };
  REQUIRE(read_with(shard).size() == 24);
  std::string flipped = shard;
  flipped[shard.size() - 20] = static_cast<char>(flipped[shard.size() - 20] ^ 1);
  for (const std::string& bytes : {flipped, shard.substr(0, 40), std::string()}) {
    REQUIRE_THROWS_AS(read_with(bytes), DataError);
    REQUIRE_THROWS_WITH(read_with(bytes), ContainsSubstring("memory/data/c/0/0"));
  }
}

TEST_CASE("an index without a checksum cannot lead outside the shard", "[zarr][shard]") {
  for (const bool compressed : {false, true}) {
    const ShardSpec spec{.checksum = false, .compressed = compressed};
    const auto good = write(spec);
    ShardSpec plain = spec;
    plain.compressed = false;
    const std::string shard = shard_file(0, 0, plain);
    for (const uint64_t offset : {shard.size(), SIZE_MAX - 3, SIZE_MAX, size_t{1} << 40}) {
      for (const uint64_t bytes : {uint64_t{24}, uint64_t{0}, uint64_t{1} << 40, UINT64_MAX - 1}) {
        std::string damaged = shard;
        damaged.replace(shard.size() - 64, 16, u64(offset) + u64(bytes));
        auto store = std::make_shared<MemoryStore>(*good);
        store->put("data/c/0/0", compressed ? gzip(damaged) : damaged);
        REQUIRE_THROWS_WITH(Array(store, "data").read<float>({{0, 0}, {1, 1}}),
                            ContainsSubstring("memory/data/c/0/0"));
      }
    }
  }
}
