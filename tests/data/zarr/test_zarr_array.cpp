// SPDX-License-Identifier: Apache-2.0
// Arrays whose values say where they belong, so that every slicing error shows.
#include "data/zarr/array.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.h"
#include "core/rng.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;
using test::ArraySpec;

namespace {

using Index = std::vector<int64_t>;

// A number for every place, small enough for float32.
double position(const Index& shape, const Index& index) {
  int64_t number = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    number = number * shape[axis] + index[axis];
  return static_cast<double>(number);
}

std::shared_ptr<MemoryStore> write(const ArraySpec& spec) {
  auto store = std::make_shared<MemoryStore>("memory");
  test::write_array(*store, "data", spec,
                    [&](const Index& index) { return position(spec.shape, index); });
  return store;
}

// The region item by item.
template <class T>
std::vector<T> brute_force(const Index& shape, const Region& region) {
  std::vector<T> values;
  for (int64_t i = 0; i < region.num_items(); ++i) {
    Index index(shape.size());
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t length = region.end[axis] - region.begin[axis];
      index[axis] = region.begin[axis] + rest % length;
      rest /= length;
    }
    values.push_back(static_cast<T>(position(shape, index)));
  }
  return values;
}

Region random_region(const Index& shape, Pcg64& rng) {
  Region region;
  for (const int64_t length : shape) {
    const auto begin = static_cast<int64_t>(rng.next_bounded(static_cast<uint32_t>(length - 1)));
    region.begin.push_back(begin);
    region.end.push_back(begin + 1 + rng.next_bounded(static_cast<uint32_t>(length - 1 - begin)));
  }
  return region;
}

}  // namespace

TEST_CASE("random hyperslabs over random chunkings equal the item-wise reading", "[zarr][array]") {
  Pcg64 rng(4);
  const char* dtypes[] = {"<f4", ">f4", "<f8", "<i2", ">i8", "<f2", "<u4"};
  for (int trial = 0; trial < 60; ++trial) {
    ArraySpec spec;
    const size_t rank = 1 + rng.next_bounded(3);
    for (size_t axis = 0; axis < rank; ++axis) {
      spec.shape.push_back(1 + rng.next_bounded(axis == 0 ? 3 : 6));
      spec.chunks.push_back(1 + rng.next_bounded(7));
    }
    spec.dtype = dtypes[rng.next_bounded(6)];
    spec.order = rng.next_bounded(1) == 0 ? 'C' : 'F';
    spec.separator = rng.next_bounded(1) == 0 ? '.' : '/';
    spec.compressor = rng.next_bounded(2) == 0 ? "null" : "blosc";
    spec.block_bytes = 16;
    spec.inner_codec = "zstd";  // others would not make such small blocks
    spec.fill_value = "0";
    const Array array(write(spec), "data");
    INFO(spec.dtype << " order " << spec.order);
    for (int k = 0; k < 5; ++k) {
      const Region region = random_region(spec.shape, rng);
      REQUIRE(array.read<double>(region) == brute_force<double>(spec.shape, region));
      REQUIRE(array.read<float>(region) == brute_force<float>(spec.shape, region));
    }
    const Region whole = Region::whole(spec.shape);
    REQUIRE(array.read<double>(whole) == brute_force<double>(spec.shape, whole));
    if (spec.dtype[1] != 'f') {
      REQUIRE(array.read<int64_t>(whole) == brute_force<int64_t>(spec.shape, whole));
    }
  }
}

TEST_CASE("an array without axes is one number", "[zarr][array]") {
  const Array array(write({.shape = {}, .chunks = {}, .dtype = "<f8"}), "data");
  REQUIRE(array.read<double>({}) == std::vector<double>{0.0});
}

TEST_CASE("an absent chunk is its fill value, or an error that names it", "[zarr][array]") {
  for (const char* fill : {"\"NaN\"", "7.5"}) {
    const auto store =
        write({.shape = {4, 6}, .chunks = {2, 3}, .fill_value = fill, .absent = {"1.0"}});
    const Array array(store, "data");
    const auto values = array.read<float>({{1, 1}, {3, 4}});
    REQUIRE(values[0] == 7.0F);
    REQUIRE(values[2] == 9.0F);
    REQUIRE(values[5] == 15.0F);
    REQUIRE((std::isnan(values[3]) || values[3] == 7.5F));
    REQUIRE_THROWS_WITH(array.read<float>({{1, 1}, {3, 4}}, AbsentChunk::kError),
                        ContainsSubstring("memory/data/1.0"));
    REQUIRE_NOTHROW(array.read<float>({{0, 0}, {2, 6}}, AbsentChunk::kError));
  }
}

TEST_CASE("an absent chunk without a fill value is an error that names the metadata",
          "[zarr][array]") {
  const auto store =
      write({.shape = {4, 6}, .chunks = {2, 3}, .fill_value = "null", .absent = {"1.0"}});
  const Array array(store, "data");
  REQUIRE_NOTHROW(array.read<float>({{0, 0}, {2, 6}}));
  REQUIRE_THROWS_WITH(array.read<float>({{1, 1}, {3, 4}}),
                      ContainsSubstring("'memory/data/1.0' is missing, and the fill_value in "
                                        "'memory/data/.zarray' is null"));
  const int64_t chunk[] = {1, 0};
  REQUIRE_THROWS_AS(array.cached_chunk(chunk), DataError);
}

TEST_CASE("the chunks that are there are listed, and nothing else is", "[zarr][array]") {
  const auto listed = [](const std::shared_ptr<MemoryStore>& store) {
    std::set<Index> chunks;
    const auto visit = [&](std::span<const int64_t> chunk) {
      chunks.emplace(chunk.begin(), chunk.end());
    };
    REQUIRE(Array(store, "data").list_chunks(visit));
    return chunks;
  };
  const auto store = write({.shape = {4, 6}, .chunks = {2, 3}, .absent = {"1.0"}});
  for (const char* other :
       {"0.0.0", "0", "0.", ".0", "a.b", "0.0~", "-1.0", "0.99999999999999999999"})
    store->put(std::string("data/") + other, "");
  REQUIRE(listed(store) == std::set<Index>{{0, 0}, {0, 1}, {1, 1}});
  const auto nested =
      write({.shape = {4, 6}, .chunks = {2, 3}, .separator = '/', .absent = {"1.0", "1.1"}});
  REQUIRE(listed(nested) == std::set<Index>{{0}});
}

TEST_CASE("errors name store, array and chunk", "[zarr][array]") {
  const auto store = write({.shape = {4, 6}, .chunks = {2, 3}});
  store->put("data/1.1", "rubbish");
  const Array array(store, "data");
  REQUIRE_THROWS_WITH(array.read<float>({{3, 5}, {4, 6}}), ContainsSubstring("memory/data/1.1"));
  REQUIRE_NOTHROW(array.read<float>({{0, 0}, {2, 6}}));
  REQUIRE_THROWS_WITH(Array(store, "lost"),
                      ContainsSubstring("'memory'") && ContainsSubstring("'lost'"));
}

TEST_CASE("a chunk that no computer can hold is refused before anything is allocated",
          "[zarr][array]") {
  const auto store = write({.shape = {4, 6}, .chunks = {2, 3}});
  test::edit(*store, "data/.zarray", "[2, 3]", "[2, 1099511627776]");
  const Array array(store, "data");
  REQUIRE_THROWS_WITH(array.read<float>({{0, 0}, {1, 1}}),
                      ContainsSubstring("data/0.0") && ContainsSubstring("data/.zarray"));
  test::edit(*store, "data/.zarray", "[2, 1099511627776]", "[2, 200000000]");
  REQUIRE_THROWS_AS(Array(store, "data").read<float>({{0, 0}, {1, 1}}), DataError);
}

TEST_CASE("a file much larger than its chunk can be is refused", "[zarr][array]") {
  const auto store = write({.shape = {4, 6}, .chunks = {2, 3}});
  store->put("data/0.0", std::string(100000, 'x'));
  REQUIRE_THROWS_WITH(Array(store, "data").read<float>({{0, 0}, {1, 1}}),
                      ContainsSubstring("'memory/data/0.0' has 100000 bytes: sizes do not agree "
                                        "with the chunk shape and dtype in 'memory/data/.zarray', "
                                        "which need 24"));
}

TEST_CASE("any damage to metadata or chunk is an error or another value", "[zarr][array]") {
  const ArraySpec spec{.shape = {3, 5}, .chunks = {2, 3}, .dtype = "<f8"};
  const auto good = write(spec);
  const CounterRng rng(8);
  for (const char* key : {"data/.zarray", "data/0.1"}) {
    const std::string original = good->values().at(key);
    for (uint64_t trial = 0; trial < 400; ++trial) {
      std::string damaged = original;
      const size_t at = rng.bits(2 * trial) % original.size();
      if (trial % 4 == 0) {
        damaged.resize(at);
      } else {
        damaged[at] = static_cast<char>(rng.bits(2 * trial + 1));
      }
      MemoryStore store = *good;
      store.put(key, damaged);
      try {
        const Array array(std::make_shared<MemoryStore>(store), "data");
        array.read<double>(Region::whole(array.meta().shape));
      } catch (const DataError& error) {
        REQUIRE_THAT(std::string(error.what()), ContainsSubstring("memory/data/"));
      }
    }
  }
}

TEST_CASE("cached chunks are decoded once and have the same items", "[zarr][array]") {
  const auto store = write({.shape = {4, 6}, .chunks = {2, 3}, .absent = {"0.1"}});
  const Array array(store, "data", 1 << 20);
  const Index chunk{1, 1};
  ChunkScratch scratch;
  const ChunkView plain = array.decode_chunk(chunk, {}, scratch);
  for (int k = 0; k < 3; ++k) {
    const ChunkView cached = array.cached_chunk(chunk);
    REQUIRE(std::equal(cached.items, cached.items + 24, plain.items));
  }
  REQUIRE(array.cache().num_misses() == 1);
  REQUIRE(array.cache().num_hits() == 2);
  REQUIRE(array.cached_chunk(Index{0, 1}).items == nullptr);
}

TEST_CASE("a folder reads like memory", "[zarr][array]") {
  const ArraySpec spec{.shape = {4, 6, 2}, .chunks = {2, 4, 1}, .separator = '/'};
  const test::TemporaryFolder folder;
  test::write_to_folder(*write(spec), folder.path());
  const Array array(std::make_shared<DirectoryStore>(folder.path().string()), "data");
  const Region whole = Region::whole(spec.shape);
  REQUIRE(array.read<double>(whole) == brute_force<double>(spec.shape, whole));
}
