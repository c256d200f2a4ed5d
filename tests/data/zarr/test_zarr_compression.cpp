// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/compression.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "data/zarr/codec_blosc.h"
#include "data/zarr/codec_zstd.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

TEST_CASE("encoded bytes decode to what they were", "[zarr]") {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i)
    values.push_back(static_cast<float>(i % 97) * 0.5f);
  const auto bytes = std::as_bytes(std::span(values));
  const DecodeRequest request{.size = bytes.size(), .exact = true};
  for (const char* name : {"blosc-lz4", "blosc-zstd", "blosc-zlib", "blosc-blosclz", "zstd"}) {
    const Compression compression = Compression::parse(name);
    Buffer encoded, decoded;
    encode(compression, bytes, 4, encoded);
    CAPTURE(name);
    CHECK(encoded.size() < bytes.size() / 2);
    if (compression.kind == Compression::Kind::kZstd) {
      ZstdCodec().decode(encoded.bytes(), request, decoded);
    } else {
      BloscCodec().decode(encoded.bytes(), request, decoded);
    }
    REQUIRE(decoded.size() == bytes.size());
    CHECK(std::memcmp(decoded.data(), bytes.data(), bytes.size()) == 0);
  }
}

TEST_CASE("a compression is known again from the metadata of either format", "[zarr]") {
  for (const char* name : {"blosc-lz4", "blosc-lz4hc", "blosc-zstd", "zstd", "none"}) {
    const Compression compression = Compression::parse(name);
    CAPTURE(name);
    CHECK(compression_of(Json{{"compressor", compressor_v2(compression)}}, 2) == compression);
    CHECK(compression_of(Json{{"codecs", codecs_v3(compression, 4)}}, 3) == compression);
  }
}

TEST_CASE("codecs that are not written here are still described", "[zarr]") {
  const Json gzip = Json::parse(R"({"compressor": {"id": "gzip", "level": 5}})");
  CHECK_FALSE(compression_of(gzip, 2));
  CHECK(describe_codecs(gzip, 2) == "gzip");
  const Json v3 = Json::parse(
      R"({"codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 7}},
                     {"name": "crc32c"}]})");
  CHECK(describe_codecs(v3, 3) == "zstd, level 7, then crc32c");
  CHECK(describe_codecs(Json::parse(R"({"compressor": null})"), 2) == "none");
}
