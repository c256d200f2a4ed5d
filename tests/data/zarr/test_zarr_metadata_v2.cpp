// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/metadata_v2.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

Json good() {
  return parse_json(R"({"zarr_format": 2, "shape": [13, 30, 1, 684], "chunks": [5, 7, 1, 200],
      "dtype": "<f4", "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
      "fill_value": "NaN", "filters": null, "order": "C"})",
                    "f");
}

ArrayMeta with(const char* member, const char* value) {
  Json json = good();
  json[member] = parse_json(value, "f");
  return parse_array_v2(json, "store/data/.zarray");
}

}  // namespace

TEST_CASE("metadata of format 2 are read", "[zarr][v2]") {
  const ArrayMeta meta = parse_array_v2(good(), "f");
  REQUIRE(meta.shape == std::vector<int64_t>{13, 30, 1, 684});
  REQUIRE(meta.chunk.shape == std::vector<int64_t>{5, 7, 1, 200});
  REQUIRE(meta.chunk.strides() == std::vector<int64_t>{1400, 200, 200, 1});
  REQUIRE(meta.chunk.codecs.names() == "blosc");
  REQUIRE(meta.type.name() == "float32");
  REQUIRE(std::isnan(meta.fill.real));
  REQUIRE(meta.chunk_bytes() == 28000);
  REQUIRE_FALSE(meta.sharding.has_value());
  REQUIRE(meta.keys.key(std::vector<int64_t>{2, 0, 0, 3}) == "2.0.0.3");
}

TEST_CASE("order F turns the axes around, the separator joins the keys", "[zarr][v2]") {
  REQUIRE(with("order", "\"F\"").chunk.strides() == std::vector<int64_t>{1, 5, 35, 35});
  REQUIRE(with("dimension_separator", "\"/\"").keys.key(std::vector<int64_t>{1, 2}) == "1/2");
  REQUIRE(with("dimension_separator", "null").keys.key({}) == "0");
}

TEST_CASE("null compressors, empty filters and unknown members are fine", "[zarr][v2]") {
  REQUIRE(with("compressor", "null").chunk.codecs.empty());
  REQUIRE_NOTHROW(with("filters", "[]"));
  REQUIRE_NOTHROW(with("invented", "{\"x\": 1}"));
  REQUIRE_FALSE(with("fill_value", "null").fill.defined);
}

TEST_CASE("what is wrong is named together with the file", "[zarr][v2]") {
  struct Case {
    const char* member;
    const char* value;
    const char* named;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"zarr_format", "4", "zarr_format"},
           {"zarr_format", "\"2\"", "zarr_format"},
           {"shape", "[13, 30, 1, -684]", "shape"},
           {"shape", "[13, 30, 1, 1000000000000000]", "shape"},
           {"shape", "[9223372036854775807, 9223372036854775807, 2, 2]", "shape"},
           {"shape", "[18446744073709551615, 1, 1, 1]", "shape"},
           {"shape", "[1.5, 1, 1, 1]", "shape"},
           {"shape", "[\"13\", 30, 1, 684]", "shape"},
           {"shape", "{}", "shape"},
           {"shape", "null", "shape"},
           {"shape", "[1, 1, 1, 1, 1]", "chunks"},
           {"chunks", "[5, 7, 0, 200]", "chunks"},
           {"chunks", "[5, 7, -1, 200]", "chunks"},
           {"chunks", "[5, 7, 200]", "chunks"},
           {"chunks", "[4611686018427387904, 4611686018427387904, 1, 1]", "chunks"},
           {"chunks", "null", "chunks"},
           {"dtype", "\"|O\"", "dtype"},
           {"dtype", "\"<c8\"", "dtype"},
           {"dtype", "[[\"a\", \"<f4\"]]", "dtype"},
           {"dtype", "null", "dtype"},
           {"compressor", "{\"id\": \"quantum\"}", "codec 'quantum'"},
           {"compressor", "{}", "compressor"},
           {"compressor", "\"blosc\"", "compressor"},
           {"filters", "[{\"id\": \"delta\", \"dtype\": \"<f4\"}]", "delta"},
           {"filters", "[{\"id\": \"delta\", \"dtype\": \"<f4\"}]", "filters"},
           {"order", "\"K\"", "order"},
           {"fill_value", "\"nothing\"", "fill_value"},
           {"dimension_separator", "\"-\"", "dimension_separator"}}) {
    INFO(c.member << " = " << c.value);
    REQUIRE_THROWS_AS(with(c.member, c.value), DataError);
    REQUIRE_THROWS_WITH(with(c.member, c.value),
                        ContainsSubstring(c.named) && ContainsSubstring("store/data/.zarray"));
  }
}

TEST_CASE("a member that is not there is named", "[zarr][v2]") {
  for (const char* member : {"zarr_format", "shape", "chunks", "dtype", "compressor", "order"}) {
    Json json = good();
    json.erase(member);
    REQUIRE_THROWS_WITH(parse_array_v2(json, "f"), ContainsSubstring(member));
  }
  Json json = good();
  json.erase("filters");
  json.erase("fill_value");
  REQUIRE_NOTHROW(parse_array_v2(json, "f"));
}

TEST_CASE("metadata that are no object are refused", "[zarr][v2]") {
  for (const char* text : {"[1, 2, 3]", "null", "\"x\"", "1"}) {
    REQUIRE_THROWS_WITH(parse_array_v2(parse_json(text, "f"), "d/.zarray"),
                        ContainsSubstring("d/.zarray"));
    REQUIRE_THROWS_AS(check_group_v2(parse_json(text, "f"), ".zgroup"), DataError);
  }
  REQUIRE_NOTHROW(check_group_v2(parse_json("{\"zarr_format\": 2}", "f"), ".zgroup"));
  REQUIRE_THROWS_AS(check_group_v2(parse_json("{\"zarr_format\": 3}", "f"), ".zgroup"), DataError);
}

TEST_CASE("absurd chunks are metadata still: whoever reads one gets the error", "[zarr][v2]") {
  REQUIRE(with("chunks", "[1, 3, 1, 1099511627776]").chunk_bytes() == 13194139533312);
}
