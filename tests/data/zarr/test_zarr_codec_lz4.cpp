// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_lz4.h"

#include <lz4.h>

#include <cstring>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;
using test::decode;
using test::sample_bytes;

namespace {

const Lz4Codec kCodec;

// As numcodecs does it.
std::string encode(const std::string& plain) {
  const auto size = static_cast<int>(plain.size());
  std::string encoded(4 + static_cast<size_t>(LZ4_compressBound(size)), '\0');
  const auto size_u32 = static_cast<uint32_t>(size);
  std::memcpy(encoded.data(), &size_u32, 4);
  const int written = LZ4_compress_default(plain.data(), encoded.data() + 4, size,
                                           static_cast<int>(encoded.size()) - 4);
  REQUIRE(written > 0);
  encoded.resize(4 + static_cast<size_t>(written));
  return encoded;
}

}  // namespace

TEST_CASE("LZ4 blocks come back", "[zarr][lz4]") {
  for (const size_t size : {1, 1000, 300000}) {
    const std::string plain = sample_bytes(size), encoded = encode(plain);
    REQUIRE(decode(kCodec, encoded, size) == plain);
    REQUIRE(decode(kCodec, encoded, 2 * size, false) == plain);
    REQUIRE_THROWS_WITH(decode(kCodec, encoded, size + 1), ContainsSubstring("size"));
    REQUIRE_THROWS_AS(decode(kCodec, encoded, size - 1, false), DataError);
  }
}

TEST_CASE("damaged LZ4 ends in an error or in wrong values", "[zarr][lz4]") {
  int num_errors = 0;
  test::for_each_damage(encode(sample_bytes(3000)), [&](const std::string& damaged) {
    const auto decoded = test::try_decode(kCodec, damaged, 3000);
    if (decoded) REQUIRE(decoded->size() == 3000);
    num_errors += decoded ? 0 : 1;
  });
  REQUIRE(num_errors > 100);
}

TEST_CASE("what is wrong with a block is said in our words", "[zarr][lz4]") {
  const std::string good = encode(sample_bytes(3000));
  REQUIRE_THROWS_WITH(decode(kCodec, good.substr(0, good.size() / 2), 3000),
                      ContainsSubstring("its LZ4 block does not decode"));
}
