// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_blosc.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"
#include "tests/support/zarr_writer.h"

using namespace aifs;
using namespace aifs::zarr;
using test::blosc_encode;
using test::decode;
using test::sample_bytes;

namespace {

const BloscCodec kCodec;

std::string with_u32(std::string bytes, size_t offset, uint32_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

}  // namespace

TEST_CASE("what c-blosc encodes, in any way, comes back", "[zarr][blosc]") {
  for (const char* inner : {"lz4", "lz4hc", "blosclz", "zlib", "zstd"}) {
    for (const int shuffle : {0, 1, 2}) {
      for (const size_t type_bytes : {1, 2, 4, 8}) {
        for (const size_t size : {8, 800, 80000}) {
          INFO(inner << " shuffle " << shuffle << " type " << type_bytes << " size " << size);
          const std::string plain = sample_bytes(size);
          REQUIRE(decode(kCodec, blosc_encode(plain, type_bytes, inner, shuffle), size) == plain);
        }
      }
    }
  }
}

TEST_CASE("the header says what was encoded", "[zarr][blosc]") {
  const std::string encoded = blosc_encode(sample_bytes(80000), 4, "zstd", 1, 4096);
  const BloscHeader header = read_blosc_header(test::bytes_of(encoded));
  REQUIRE(header.decoded_bytes == 80000);
  REQUIRE(header.block_bytes == 4096);
  REQUIRE(header.encoded_bytes == encoded.size());
  REQUIRE(header.type_bytes == 4);
  REQUIRE(header.num_blocks() == 20);
  REQUIRE_FALSE(header.copied);
  REQUIRE(read_blosc_header(test::bytes_of(blosc_encode("12345678", 8))).copied);
}

TEST_CASE("a part has the same bytes as the whole", "[zarr][blosc]") {
  const CounterRng rng(5);
  for (const size_t block_bytes : {256, 4096, 65536}) {
    const std::string plain = sample_bytes(100000);
    const std::string encoded = blosc_encode(plain, 4, "zstd", 1, block_bytes);
    for (uint64_t trial = 0; trial < 40; ++trial) {
      std::vector<ByteRange> needed;
      size_t at = rng.bits(trial) % 50000;
      for (uint64_t k = 0; k < 3 && at < plain.size(); ++k) {
        const size_t end = std::min(at + 1 + rng.bits(100 * trial + k) % 3000, plain.size());
        needed.push_back({at, end});
        at = end + 1 + rng.bits(200 * trial + k) % 30000;
      }
      Buffer decoded;
      kCodec.decode(test::bytes_of(encoded),
                    {.size = plain.size(), .exact = true, .needed = needed}, decoded);
      REQUIRE(decoded.size() == plain.size());
      for (const ByteRange& range : needed) {
        REQUIRE(std::memcmp(decoded.data() + range.begin, plain.data() + range.begin,
                            range.end - range.begin) == 0);
      }
    }
  }
}

TEST_CASE("only the blocks of a part are decoded", "[zarr][blosc]") {
  const std::string plain = sample_bytes(64 * 4096);
  std::string encoded = blosc_encode(plain, 4, "zstd", 1, 4096);
  REQUIRE(read_blosc_header(test::bytes_of(encoded)).num_blocks() == 64);
  uint32_t last_block;  // ruin the last block: decoding it would fail
  std::memcpy(&last_block, encoded.data() + 16 + 4 * 63, sizeof last_block);
  encoded = with_u32(encoded, last_block, 0x7fffffff);
  REQUIRE_THROWS_AS(decode(kCodec, encoded, plain.size()), DataError);
  const std::vector<ByteRange> needed{{0, 4096}, {40960, 50000}};
  Buffer decoded;
  kCodec.decode(test::bytes_of(encoded), {.size = plain.size(), .exact = true, .needed = needed},
                decoded);
  REQUIRE(std::memcmp(decoded.data() + 40960, plain.data() + 40960, 9040) == 0);
}

TEST_CASE("each damaged field of the header is named", "[zarr][blosc]") {
  const std::string good = blosc_encode(sample_bytes(8208), 4);
  struct Case {
    std::string bytes;
    const char* message;
  };
  std::string version = good, type_size = good;
  version[0] = 99;
  type_size[3] = 0;
  for (const Case& c : {Case{good.substr(0, 8), "shorter than a Blosc header"},
                        {version, "not a Blosc buffer"},
                        {version, "version"},
                        {type_size, "type size"},
                        {good.substr(0, good.size() - 1), "truncated or corrupt"},
                        {good.substr(0, good.size() / 2), "truncated or corrupt"},
                        {with_u32(good, 4, 0x7ffffff0), "sizes do not agree with the chunk shape"},
                        {with_u32(good, 8, 0), "block size"},
                        {with_u32(good, 8, 0xffffffff), "block size"},
                        {with_u32(good, 12, 0xffffffff), "truncated or corrupt"},
                        {with_u32(good, 16, 0x7fffffff), "offset outside the buffer"},
                        {with_u32(good, 16, 0), "offset outside the buffer"},
                        {"<html><body>404 Not Found</body></html>", "not a Blosc buffer"}}) {
    REQUIRE_THROWS_WITH(decode(kCodec, c.bytes, 8208), ContainsSubstring(c.message));
  }
}

TEST_CASE("an inner codec that is unknown or not built in is named", "[zarr][blosc]") {
  std::string encoded = blosc_encode(sample_bytes(8208), 4);
  REQUIRE(inner_codec_name(read_blosc_header(test::bytes_of(encoded)).inner_codec) == "lz4");
  encoded[2] = static_cast<char>((encoded[2] & 0x1f) | (7 << 5));
  REQUIRE_THROWS_WITH(decode(kCodec, encoded, 8208),
                      ContainsSubstring("inner codec, number 7 of Blosc, is unknown"));
  const std::vector<const char*> names{"blosclz", "lz4", "snappy", "zlib", "zstd"};
  for (size_t number = 0; number < names.size(); ++number) {
    try {
      REQUIRE(inner_codec_name(static_cast<int>(number)) == names[number]);
    } catch (const DataError& error) {  // builds of the library differ in this one only
      REQUIRE(names[number] == std::string("snappy"));
      REQUIRE_THAT(std::string(error.what()), ContainsSubstring("inner codec 'snappy' of Blosc"));
      REQUIRE_THAT(error.hint(), ContainsSubstring("lz4"));
    }
  }
}

TEST_CASE("the size that differs is named before what comes of it", "[zarr][blosc]") {
  const std::string good = blosc_encode(sample_bytes(8208), 4);
  // A block larger than all, and a file cut short: both follow from, or are less than, the size.
  for (const std::string& bytes :
       {with_u32(good, 4, 100), with_u32(good.substr(0, good.size() - 5), 4, 100)}) {
    REQUIRE_THROWS_WITH(decode(kCodec, bytes, 8208),
                        ContainsSubstring("decodes to 100 bytes: sizes do not agree"));
  }
  REQUIRE_THROWS_WITH(decode(kCodec, good.substr(0, good.size() - 5), 4104),
                      ContainsSubstring("decodes to 8208 bytes"));
}

TEST_CASE("the size must be that of the chunk, or at most the limit", "[zarr][blosc]") {
  const std::string encoded = blosc_encode(sample_bytes(800), 4);
  REQUIRE_THROWS_WITH(decode(kCodec, encoded, 804), ContainsSubstring("size"));
  REQUIRE_THROWS_AS(decode(kCodec, encoded, 796), DataError);
  REQUIRE(decode(kCodec, encoded, 804, false) == sample_bytes(800));
  REQUIRE_THROWS_AS(decode(kCodec, encoded, 796, false), DataError);
}

TEST_CASE("damage ends in an error or in wrong values, never in a crash", "[zarr][blosc]") {
  for (const char* inner : {"lz4", "blosclz", "zlib", "zstd"}) {
    const std::string good = blosc_encode(sample_bytes(3000), 4, inner, 1, 1024);
    int num_errors = 0;
    test::for_each_damage(good, [&](const std::string& damaged) {
      const auto decoded = test::try_decode(kCodec, damaged, 3000);
      if (decoded) REQUIRE(decoded->size() == 3000);
      num_errors += decoded ? 0 : 1;
    });
    REQUIRE(num_errors > 0);
  }
}
