// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/caching_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "data/zarr/array.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

// A store of `count` chunks of 1000 bytes, chunk i all of one letter.
fs::path write_store(const fs::path& folder, int count) {
  make_directories(folder / "data");
  write_file_atomic(folder / "data" / ".zarray", "{}");
  for (int i = 0; i < count; ++i)
    write_file_atomic(folder / "data" / concat(i, ".0"),
                      std::string(1000, static_cast<char>('a' + i)));
  return folder;
}

// The first letter of a value, read in both ways.
std::string letter(const Store& store, const std::string& key) {
  const auto file = store.open(key);
  if (!file) return "absent";
  std::string bytes(file->size(), '?');
  file->read(0, bytes.size(), static_cast<std::byte*>(static_cast<void*>(bytes.data())));
  Buffer whole;
  REQUIRE(store.get(key, 2000, whole));
  REQUIRE(whole.size() == bytes.size());
  return bytes.substr(0, 1);
}

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path name = entry.path().filename();
    if (entry.is_regular_file() && name != "origin" && name != "bytes")
      bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

}  // namespace

TEST_CASE("chunks are copied once, read from the copy, and copied again when they change",
          "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 3), cache = folder.path() / "cache";
  const CachingStore store(origin.string(), cache, 1 << 20);
  REQUIRE(letter(store, "data/1.0") == "b");
  REQUIRE(store.num_copies() == 1);
  REQUIRE(store.num_hits() == 1);  // the second way of reading
  REQUIRE(letter(store, "data/9.0") == "absent");
  const CachingStore later(origin.string(), cache, 1 << 20);
  REQUIRE(letter(later, "data/1.0") == "b");
  REQUIRE(later.num_copies() == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // another time of writing
  write_file_atomic(origin / "data" / "1.0", std::string(1000, 'X'));
  REQUIRE(letter(later, "data/1.0") == "X");
  REQUIRE(later.num_copies() == 1);
  // Metadata are not copied, and another store has copies of its own.
  REQUIRE(letter(later, "data/.zarray") == "{");
  REQUIRE(bytes_in(cache) == 1000);
  const fs::path other = write_store(folder.path() / "b.zarr", 3);
  REQUIRE(letter(CachingStore(other.string(), cache, 1 << 20), "data/1.0") == "b");
  REQUIRE(bytes_in(cache) == 2000);
}

TEST_CASE("the cache keeps its limit, and what was used last", "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 10),
                 cache = folder.path() / "cache";
  const CachingStore store(origin.string(), cache, 3500);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(letter(store, concat("data/", i, ".0")) == std::string(1, static_cast<char>('a' + i)));
    REQUIRE(letter(store, "data/0.0") == "a");  // used all the time
    REQUIRE(bytes_in(cache) <= 3500);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const CachingStore later(origin.string(), cache, 3500);
  REQUIRE(letter(later, "data/0.0") == "a");
  REQUIRE(letter(later, "data/9.0") == "j");
  REQUIRE(later.num_copies() == 0);
  // A chunk beyond the limit is read from the original.
  const CachingStore small(origin.string(), folder.path() / "small", 500);
  REQUIRE(letter(small, "data/1.0") == "b");
  REQUIRE(bytes_in(folder.path() / "small") == 0);
}

TEST_CASE("many threads and stores may share a cache", "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 20),
                 cache = folder.path() / "cache";
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const CachingStore store(origin.string(), cache, t < 2 ? 5000 : 1 << 20);
        for (int i = 0; i < 200; ++i) {
          const int chunk = (7 * i + t) % 20;
          const auto file = store.open(concat("data/", chunk, ".0"));
          std::byte bytes[1000];
          file->read(0, 1000, bytes);
          if (file->size() != 1000 || bytes[999] != static_cast<std::byte>('a' + chunk)) ++wrong;
        }
      });
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("nothing but copies is removed from a folder that becomes a cache", "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 10),
                 cache = folder.path() / "cache";
  make_directories(cache / "thesis");
  write_file_atomic(cache / "thesis" / "chapter", std::string(5000, 'x'));
  write_file_atomic(cache / "notes", std::string(5000, 'x'));
  const CachingStore store(origin.string(), cache, 2000);
  for (int i = 0; i < 10; ++i)
    letter(store, concat("data/", i, ".0"));
  REQUIRE(fs::file_size(cache / "thesis" / "chapter") == 5000);
  REQUIRE(fs::file_size(cache / "notes") == 5000);
  REQUIRE(bytes_in(cache / "aifs-chunks") <= 2000);
}

TEST_CASE("processes keep one limit together", "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 40),
                 cache = folder.path() / "cache";
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    const CachingStore store(origin.string(), cache, 6000);
    for (int i = 0; i < 10; ++i)
      store.open(concat("data/", 10 * child + i, ".0"));
    ::_exit(store.num_copies() == 10 ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  REQUIRE(bytes_in(cache) <= 6000);
  REQUIRE(bytes_in(cache) >= 5000);
}

TEST_CASE("a copy that its disk has damaged is made anew, and nobody reads it", "[caching_store]") {
  const test::TemporaryFolder folder;
  const test::ArraySpec spec{.shape = {40000}, .chunks = {40000}, .block_bytes = 8192};
  MemoryStore written("memory");
  test::write_array(written, "data", spec, [](const auto& at) { return 0.5 * at[0]; });
  test::write_to_folder(written, folder.path() / "a.zarr");
  const fs::path cache = folder.path() / "cache";
  const auto store =
      std::make_shared<CachingStore>((folder.path() / "a.zarr").string(), cache, 1 << 20);
  const auto sum_of_pieces = [&] {
    const Array array(store, "data");
    const std::vector<int64_t> first{0};
    const auto chunk = array.open_chunk(first);
    ChunkScratch scratch;
    double sum = 0.0;
    for (size_t piece = 0; piece < chunk->num_pieces(); ++piece) {
      const ItemRange items = chunk->items(piece);
      const BlockView view = chunk->decode(piece, items, scratch);
      REQUIRE(view.planar);
      for (int64_t i = 0; i < items.end - items.begin; ++i) {
        std::byte bytes[4];
        for (size_t b = 0; b < 4; ++b)
          bytes[b] = view.bytes[b * view.plane_bytes + static_cast<size_t>(i)];
        float value = 0.0F;
        std::memcpy(&value, bytes, sizeof value);
        sum += static_cast<double>(value);
      }
    }
    return sum;
  };
  const double right = sum_of_pieces();
  REQUIRE(right == 0.5 * 39999.0 * 40000.0 / 2.0);
  fs::path copy;
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    if (entry.path().filename() == "data_0") copy = entry.path();
  }
  const auto time = fs::last_write_time(copy);
  for (const size_t at : {size_t{3}, size_t{20}, size_t{fs::file_size(copy) / 2}}) {
    std::string bytes = read_file(copy);
    for (size_t i = at; i < std::min(bytes.size(), at + 3000); ++i)
      bytes[i] = static_cast<char>(~bytes[i]);
    std::ofstream(copy, std::ios::binary) << bytes;
    fs::last_write_time(copy, time);
    REQUIRE(sum_of_pieces() == right);
  }
  REQUIRE(Array(store, "data").read<double>(Region::whole({40000}), AbsentChunk::kError)[39999] ==
          0.5 * 39999.0);
}

TEST_CASE("a cache that cannot be is an error at the start; one that fails later is left",
          "[caching_store]") {
  const test::TemporaryFolder folder;
  const fs::path origin = write_store(folder.path() / "a.zarr", 3);
  write_file_atomic(folder.path() / "file", "");
  REQUIRE_THROWS_WITH(CachingStore(origin.string(), folder.path() / "file", 1 << 20),
                      ContainsSubstring("cannot be a cache"));
  const CachingStore store(origin.string(), folder.path() / "cache", 1 << 20);
  fs::remove_all(folder.path() / "cache");
  REQUIRE(letter(store, "data/1.0") == "b");
  REQUIRE(store.num_copies() == 0);
}
