// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/node.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;

TEST_CASE("a group of format 2 has its attributes in a file of their own", "[zarr][node]") {
  MemoryStore store("memory");
  REQUIRE_FALSE(read_root_group(store).has_value());
  store.put(".zgroup", R"({"zarr_format": 2})");
  REQUIRE(read_root_group(store)->attributes.empty());
  store.put(".zattrs", R"({"frequency": "6h", "extra": NaN})");
  const auto group = read_root_group(store);
  REQUIRE(group->format == 2);
  REQUIRE(group->attributes["frequency"] == "6h");
  REQUIRE(group->attributes_file == "memory/.zattrs");
  store.put(".zattrs", "[]");
  REQUIRE_THROWS_WITH(read_root_group(store), ContainsSubstring("memory/.zattrs"));
}

TEST_CASE("format 3 comes first where both are there", "[zarr][node]") {
  MemoryStore store("memory");
  store.put(".zgroup", R"({"zarr_format": 2})");
  store.put("zarr.json", R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})");
  REQUIRE(read_root_group(store)->format == 3);
  REQUIRE(read_root_group(store)->attributes["a"] == 1);
}

TEST_CASE("arrays of both formats are found, others are not there", "[zarr][node]") {
  MemoryStore store("memory");
  test::write_array(store, "old", {.shape = {2}, .chunks = {2}}, [](const auto&) { return 0.0; });
  store.put("new/zarr.json", R"({"zarr_format": 3, "node_type": "array", "shape": [2],
      "data_type": "bool", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
      "chunk_key_encoding": "default", "fill_value": false, "codecs": ["bytes"]})");
  REQUIRE(read_array_meta(store, "old")->file == "memory/old/.zarray");
  REQUIRE(read_array_meta(store, "new")->file == "memory/new/zarr.json");
  REQUIRE_FALSE(read_array_meta(store, "none").has_value());
  REQUIRE((node_exists(store, "old") && node_exists(store, "new") && !node_exists(store, "none")));
}
