// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/store.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

std::string text(const Buffer& buffer) {
  return {static_cast<const char*>(static_cast<const void*>(buffer.data())), buffer.size()};
}

// Holds the same three keys in memory and on disk.
struct BothStores {
  BothStores() {
    auto store = std::make_unique<MemoryStore>("memory");
    store->put(".zgroup", "group");
    store->put("data/0.0", "0123456789");
    store->put("data/empty", "");
    test::write_to_folder(*store, folder.path());
    stores.push_back(std::move(store));
    stores.push_back(std::make_unique<DirectoryStore>(folder.path().string() + "///"));
  }
  test::TemporaryFolder folder;
  std::vector<std::unique_ptr<Store>> stores;
};

}  // namespace

TEST_CASE("folders and maps give the same bytes", "[zarr][store]") {
  const BothStores both;
  for (const auto& store : both.stores) {
    Buffer bytes;
    REQUIRE(store->get("data/0.0", 10, bytes));
    REQUIRE(text(bytes) == "0123456789");
    REQUIRE(store->get_range("data/0.0", 3, 4, bytes));
    REQUIRE(text(bytes) == "3456");
    REQUIRE(store->get("data/empty", 10, bytes));
    REQUIRE(bytes.size() == 0);
    REQUIRE(store->size("data/0.0") == size_t{10});
    REQUIRE(store->root_names() == std::vector<std::string>{".zgroup", "data"});
  }
}

TEST_CASE("an absent key is an answer, not an error", "[zarr][store]") {
  const BothStores both;
  for (const auto& store : both.stores) {
    Buffer bytes;
    // The last one would have to lie in something that is no folder.
    for (const char* key : {"nothing", "no/where", "data/0.0/x"}) {
      REQUIRE_FALSE(store->get(key, 10, bytes));
      REQUIRE_FALSE(store->get_range(key, 0, 1, bytes));
      REQUIRE_FALSE(store->size(key).has_value());
    }
  }
}

TEST_CASE("bytes that cannot be there are an error that names the file", "[zarr][store]") {
  const BothStores both;
  for (const auto& store : both.stores) {
    Buffer bytes;
    const std::string path = store->path_of("data/0.0");
    REQUIRE_THROWS_WITH(store->get("data/0.0", 9, bytes), ContainsSubstring(path));
    REQUIRE_THROWS_AS(store->get_range("data/0.0", 8, 3, bytes), DataError);
    REQUIRE_THROWS_AS(store->get_range("data/0.0", SIZE_MAX, 3, bytes), DataError);
    REQUIRE_THROWS_AS(store->get_range("data/0.0", 3, SIZE_MAX, bytes), DataError);
    REQUIRE_THROWS_WITH(store->get_range("data/0.0", 11, 0, bytes), ContainsSubstring(path));
  }
}

TEST_CASE("a folder or a pipe where a file should be is an error, and nobody waits for it",
          "[zarr][store]") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder.path() / "data" / "0.0");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const DirectoryStore store(folder.path().string());
  Buffer bytes;
  REQUIRE_THROWS_WITH(store.get("data/0.0", 10, bytes), ContainsSubstring("data/0.0"));
  REQUIRE_THROWS_AS(store.get("pipe", 10, bytes), DataError);
  REQUIRE_THROWS_AS(store.size("data/0.0"), DataError);
}

TEST_CASE("a name that starts another name is one name of the root", "[zarr][store]") {
  MemoryStore store("memory");
  for (const char* key : {"a", "a.b/x", "a/y", "a/z"})
    store.put(key, "");
  REQUIRE(store.root_names() == std::vector<std::string>{"a", "a.b"});
}

TEST_CASE("a store that does not exist has nothing in it", "[zarr][store]") {
  const DirectoryStore store("/nowhere/at/all.zarr");
  Buffer bytes;
  REQUIRE_FALSE(store.get(".zgroup", 10, bytes));
  REQUIRE_THROWS_AS(store.root_names(), DataError);
}

TEST_CASE("names below a folder are listed, an absent folder has none", "[zarr][store]") {
  const BothStores both;
  for (const auto& store : both.stores) {
    auto names = store->names_below("data").value();
    std::sort(names.begin(), names.end());
    REQUIRE(names == std::vector<std::string>{"0.0", "empty"});
    REQUIRE(store->names_below("nothing").value().empty());
  }
  MemoryStore store("memory");
  for (const char* key : {"a/b/1", "a/b/2", "a/c", "a.b/x", "ab"})
    store.put(key, "");
  REQUIRE(store.names_below("a") == std::vector<std::string>{"b", "c"});
}
