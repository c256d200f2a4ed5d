// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/chunk_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

ChunkCache::Entry entry_of(size_t size) {
  auto buffer = std::make_shared<Buffer>();
  buffer->resize(size);
  return buffer;
}

}  // namespace

TEST_CASE("what was made once is found again and counted", "[zarr][cache]") {
  ChunkCache cache(100);
  const auto first = cache.get("a", [] { return entry_of(10); });
  const auto again = cache.get("a", []() -> ChunkCache::Entry { throw Error("made twice"); });
  REQUIRE(first == again);
  REQUIRE(cache.num_hits() == 1);
  REQUIRE(cache.num_misses() == 1);
  REQUIRE(cache.size_bytes() == 10);
}

TEST_CASE("the entries used longest ago leave first, and the limit holds", "[zarr][cache]") {
  ChunkCache cache(100);
  for (const char* key : {"a", "b", "c"})
    cache.get(key, [] { return entry_of(33); });
  cache.get("a", [] { return entry_of(33); });  // b is the oldest now
  cache.get("d", [] { return entry_of(33); });
  REQUIRE(cache.size_bytes() <= 100);
  const int64_t misses = cache.num_misses();
  cache.get("a", [] { return entry_of(33); });
  cache.get("c", [] { return entry_of(33); });
  REQUIRE(cache.num_misses() == misses);
  cache.get("b", [] { return entry_of(33); });
  REQUIRE(cache.num_misses() == misses + 1);
}

TEST_CASE("what is too large, absent or failed is not kept", "[zarr][cache]") {
  ChunkCache cache(100);
  REQUIRE(cache.get("large", [] { return entry_of(101); })->size() == 101);
  REQUIRE(cache.get("absent", [] { return nullptr; }) == nullptr);
  REQUIRE_THROWS_AS(cache.get("bad", []() -> ChunkCache::Entry { throw DataError("bad"); }),
                    DataError);
  REQUIRE(cache.size_bytes() == 0);
  REQUIRE(cache.get("bad", [] { return entry_of(1); })->size() == 1);
  REQUIRE(cache.num_hits() == 0);
}

TEST_CASE("many threads that want one entry make it once", "[zarr][cache]") {
  ChunkCache cache(1000);
  std::atomic<int> made = 0, served = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto entry = cache.get(std::to_string(i), [&] {
          ++made;
          return entry_of(5);
        });
        served += entry->size() == 5 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  REQUIRE(served == 1600);
  REQUIRE(made == 200);
  REQUIRE(cache.num_hits() + cache.num_misses() == 1600);
}
