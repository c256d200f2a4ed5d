// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/metadata_v3.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

Json good() {
  return parse_json(R"({"zarr_format": 3, "node_type": "array", "shape": [13, 30, 1, 684],
      "data_type": "float32",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 30, 1, 684]}},
      "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
      "fill_value": "NaN",
      "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                 {"name": "zstd", "configuration": {"level": 0, "checksum": false}}],
      "attributes": {}, "storage_transformers": []})",
                    "f");
}

ArrayMeta with(const std::string& member, const std::string& value) {
  Json json = good();
  json[member] = parse_json(value, "f");
  return parse_array_v3(json, "store/data/zarr.json");
}

const std::string kShard = R"({"name": "sharding_indexed", "configuration": {
    "chunk_shape": [1, 30, 1, 171], "index_location": "LOCATION",
    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, "gzip"],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]}})";

std::string shard(const std::string& from = "LOCATION", const std::string& to = "end") {
  std::string text = kShard;
  if (from != "LOCATION") text.replace(text.find("LOCATION"), 8, "end");
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("metadata of format 3 are read", "[zarr][v3]") {
  const ArrayMeta meta = parse_array_v3(good(), "f");
  REQUIRE(meta.shape == std::vector<int64_t>{13, 30, 1, 684});
  REQUIRE(meta.chunk.shape == std::vector<int64_t>{4, 30, 1, 684});
  REQUIRE(meta.chunk.codecs.names() == "zstd");
  REQUIRE(meta.type.is_native_float());
  REQUIRE(meta.keys.key(std::vector<int64_t>{2, 0, 0, 3}) == "c/2/0/0/3");
  REQUIRE(meta.keys.key({}) == "c");
}

TEST_CASE("codecs may be bare names, keys may look like those of format 2", "[zarr][v3]") {
  REQUIRE(with("codecs", R"([{"name": "endian", "configuration": {"endian": "big"}}, "crc32c"])")
              .type.big_endian);
  const ArrayMeta v2_keys = with("chunk_key_encoding", "\"v2\"");
  REQUIRE(v2_keys.keys.key(std::vector<int64_t>{1, 2}) == "1.2");
  REQUIRE(v2_keys.keys.key({}) == "0");
  REQUIRE(with("chunk_key_encoding", R"({"name": "default", "configuration": {"separator": "."}})")
              .keys.key(std::vector<int64_t>{1, 2}) == "c.1.2");
}

TEST_CASE("transposes give the order of axes in memory, several are applied in turn",
          "[zarr][v3]") {
  const std::string bytes = R"({"name": "bytes", "configuration": {"endian": "little"}})";
  const std::string turn = R"({"name": "transpose", "configuration": {"order": [0, 3, 2, 1]}})";
  const std::string rotate = R"({"name": "transpose", "configuration": {"order": [1, 2, 3, 0]}})";
  REQUIRE(with("codecs", "[" + turn + "," + bytes + "]").chunk.axis_order ==
          std::vector<size_t>{0, 3, 2, 1});
  // numpy: x.transpose(0, 3, 2, 1).transpose(1, 2, 3, 0) is x.transpose(3, 2, 1, 0)
  REQUIRE(with("codecs", "[" + turn + "," + rotate + "," + bytes + "]").chunk.axis_order ==
          std::vector<size_t>{3, 2, 1, 0});
}

TEST_CASE("numpy's dates come with their unit", "[zarr][v3]") {
  Json json = good();
  json["data_type"] = parse_json(R"({"name": "numpy.datetime64",
      "configuration": {"unit": "m", "scale_factor": 10}})",
                                 "f");
  json["fill_value"] = INT64_MIN;
  const ArrayMeta meta = parse_array_v3(json, "f");
  REQUIRE(meta.type.kind == Kind::kDate);
  REQUIRE(to_seconds(meta.type.unit, 3) == 1800);
}

TEST_CASE("shards hold chunks with codecs of their own", "[zarr][v3]") {
  const ArrayMeta meta = with("codecs", "[" + shard() + ", \"gzip\"]");
  REQUIRE(meta.chunk.shape == std::vector<int64_t>{1, 30, 1, 171});
  REQUIRE(meta.chunk.codecs.names() == "gzip");
  REQUIRE(meta.type.big_endian);
  REQUIRE(meta.sharding->shape == std::vector<int64_t>{4, 30, 1, 684});
  REQUIRE(meta.sharding->codecs.names() == "gzip");
  REQUIRE(meta.sharding->index_has_checksum);
  REQUIRE_FALSE(meta.sharding->index_at_start);
  REQUIRE(meta.sharding->chunks_per_axis(meta.chunk.shape) == std::vector<int64_t>{4, 1, 1, 4});
  REQUIRE(with("codecs", "[" + shard("LOCATION", "start") + "]").sharding->index_at_start);
  REQUIRE_FALSE(with("codecs", "[" + shard(", \"crc32c\"", "") + "]").sharding->index_has_checksum);
}

TEST_CASE("what is wrong in format 3 is named together with the file", "[zarr][v3]") {
  const std::string bytes = R"({"name": "bytes", "configuration": {"endian": "little"}})";
  struct Case {
    std::string member, value, named;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"zarr_format", "2", "zarr_format"},
           {"node_type", "\"group\"", "node_type"},
           {"shape", "[13, 30, 1, -684]", "shape"},
           {"data_type", "\"complex64\"", "dtype"},
           {"data_type", "{\"name\": \"numpy.datetime64\"}", "unit"},
           {"chunk_grid", "\"rectilinear\"", "chunk_grid"},
           {"chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [1, 1]}})",
            "chunk_shape"},
           {"chunk_grid", R"({"name": "regular", "configuration": {"chunk_shape": [1, 1, 0, 1]}})",
            "chunk_shape"},
           {"chunk_grid", R"({"name": "regular", "configuration": []})", "chunk_grid"},
           {"chunk_key_encoding", "\"hilbert\"", "chunk_key_encoding"},
           {"chunk_key_encoding", R"({"name": "default", "configuration": {"separator": "-"}})",
            "separator"},
           {"fill_value", "[]", "fill_value"},
           {"storage_transformers", "[\"x\"]", "storage_transformers"},
           {"codecs", "{}", "codecs"},
           {"codecs", "[]", "bytes"},
           {"codecs", "[{}]", "codec"},
           {"codecs", "[\"bytes\"]", "endian"},
           {"codecs", "[\"zstd\"]", "'zstd' stands before 'bytes'"},
           {"codecs", "[" + bytes + ", " + bytes + "]", "wrong place"},
           {"codecs", "[" + bytes + ", \"quantum\"]", "codec 'quantum'"},
           {"codecs",
            "[{\"name\": \"transpose\", \"configuration\": {\"order\": [0, 1]}}, " + bytes + "]",
            "transpose"},
           {"codecs",
            "[{\"name\": \"transpose\", \"configuration\": {\"order\": [0, 1, 1, 2]}}, " + bytes +
                "]",
            "transpose"},
           {"codecs",
            "[{\"name\": \"transpose\", \"configuration\": {\"order\": [3, 2, 1, 0]}}, " + shard() +
                "]",
            "transpose"},
           {"codecs", "[" + shard("LOCATION", "middle") + "]", "index_location"},
           {"codecs", "[" + shard("171", "170") + "]", "chunk_shape"},
           {"codecs", "[" + shard("little", "big") + "]", "index_codecs"},
           {"codecs", "[" + shard("\"gzip\"", "\"quantum\"") + "]",
            "'sharding_indexed': inner codec 'quantum'"},
           {"codecs", "[" + shard("\"gzip\"", "\"sharding_indexed\"") + "]", "sharding_indexed"}}) {
    INFO(c.member << " = " << c.value);
    REQUIRE_THROWS_AS(with(c.member, c.value), DataError);
    REQUIRE_THROWS_WITH(with(c.member, c.value),
                        ContainsSubstring(c.named) && ContainsSubstring("store/data/zarr.json"));
  }
}

TEST_CASE("groups of format 3 give their attributes", "[zarr][v3]") {
  const auto group = [](const char* text) { return parse_group_v3(parse_json(text, "f"), "f"); };
  REQUIRE(group(R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})")["a"] == 1);
  REQUIRE(group(R"({"zarr_format": 3, "node_type": "group"})").empty());
  REQUIRE_THROWS_AS(group(R"({"zarr_format": 3, "node_type": "array"})"), DataError);
  REQUIRE_THROWS_AS(group(R"({"zarr_format": 3, "node_type": "group", "attributes": 1})"),
                    DataError);
  REQUIRE_THROWS_AS(group("[]"), DataError);
}

TEST_CASE("a shard with more chunks than an index can have is refused", "[zarr][v3]") {
  Json json = good();
  json["data_type"] = "uint8";
  json["fill_value"] = 0;
  const int64_t long_axis = int64_t{1} << 49;
  json["shape"] = {long_axis};
  json["chunk_grid"]["configuration"]["chunk_shape"] = {long_axis};
  Json sharding = parse_json(shard(), "f");
  sharding["configuration"]["chunk_shape"] = {1};
  json["codecs"] = Json::array({sharding});
  REQUIRE_THROWS_WITH(
      parse_array_v3(json, "store/data/zarr.json"),
      ContainsSubstring("store/data/zarr.json") && ContainsSubstring("chunk_shape"));
}
