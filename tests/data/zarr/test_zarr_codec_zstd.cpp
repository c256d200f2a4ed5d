// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_zstd.h"

#include <zstd.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;
using test::decode;
using test::sample_bytes;

namespace {

const ZstdCodec kCodec;

// A frame with or without the size of its content, with or without a checksum.
std::string encode(const std::string& plain, bool with_size, bool with_checksum) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, with_size ? 1 : 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, with_checksum ? 1 : 0);
  std::string encoded(ZSTD_compressBound(plain.size()), '\0');
  const size_t size =
      ZSTD_compress2(context, encoded.data(), encoded.size(), plain.data(), plain.size());
  ZSTD_freeCCtx(context);
  REQUIRE_FALSE(ZSTD_isError(size));
  encoded.resize(size);
  return encoded;
}

}  // namespace

TEST_CASE("frames come back, whether they say their size or not", "[zarr][zstd]") {
  for (const size_t size : {1, 1000, 300000}) {
    const std::string plain = sample_bytes(size);
    for (const bool with_size : {true, false}) {
      REQUIRE(decode(kCodec, encode(plain, with_size, true), size) == plain);
      REQUIRE(decode(kCodec, encode(plain, with_size, false), size + 100, false) == plain);
      REQUIRE_THROWS_AS(decode(kCodec, encode(plain, with_size, false), size + 1), DataError);
      REQUIRE_THROWS_AS(decode(kCodec, encode(plain, with_size, false), size - 1), DataError);
      REQUIRE_THROWS_AS(decode(kCodec, encode(plain, with_size, false), size - 1, false),
                        DataError);
    }
  }
}

TEST_CASE("damage is found, by the checksum at the latest", "[zarr][zstd]") {
  const std::string plain = sample_bytes(3000);
  test::for_each_damage(encode(plain, true, true), [&](const std::string& damaged) {
    if (damaged.empty()) return;  // the chain refuses what is empty
    // bits of the header that mean nothing may change nothing
    REQUIRE(test::try_decode(kCodec, damaged, plain.size()).value_or(plain) == plain);
  });
  REQUIRE_THROWS_WITH(decode(kCodec, "this is no frame", 3000),
                      ContainsSubstring("truncated or corrupt"));
}

TEST_CASE("what is wrong with a frame is said in our words", "[zarr][zstd]") {
  const std::string good = encode(sample_bytes(3000), true, true);
  REQUIRE_THROWS_WITH(decode(kCodec, good.substr(0, good.size() / 2), 3000),
                      ContainsSubstring("the Zstandard frame ends too early"));
  std::string damaged = good;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  REQUIRE_THROWS_WITH(decode(kCodec, damaged, 3000),
                      ContainsSubstring("the checksum of the Zstandard frame does not match"));
  REQUIRE_THROWS_WITH(decode(kCodec, encode(sample_bytes(3000), false, false), 100),
                      ContainsSubstring("decodes to more than 100 bytes"));
}
