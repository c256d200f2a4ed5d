// SPDX-License-Identifier: Apache-2.0
// Oracles: the test vectors of RFC 3720, appendix B.4, and the definition bit by bit.
#include "data/zarr/codec_crc32c.h"

#include <cstring>
#include <numeric>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;
using test::bytes_of;
using test::decode;
using test::sample_bytes;

namespace {

const Crc32cCodec kCodec;

uint32_t bit_by_bit(const std::string& text) {
  uint32_t crc = 0xffffffff;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

std::string with_checksum(const std::string& payload) {
  const uint32_t crc = bit_by_bit(payload);
  std::string encoded = payload + "....";
  std::memcpy(encoded.data() + payload.size(), &crc, 4);
  return encoded;
}

}  // namespace

TEST_CASE("the checksums are those of RFC 3720", "[zarr][crc32c]") {
  std::string up(32, '\0');
  std::iota(up.begin(), up.end(), '\0');
  REQUIRE(crc32c(bytes_of(std::string(32, '\0'))) == 0x8a9136aa);
  REQUIRE(crc32c(bytes_of(std::string(32, '\xff'))) == 0x62a8ab43);
  REQUIRE(crc32c(bytes_of(up)) == 0x46dd794e);
  REQUIRE(crc32c(bytes_of("123456789")) == 0xe3069283);
  REQUIRE(crc32c({}) == 0);
}

TEST_CASE("all lengths give the checksum of the definition", "[zarr][crc32c]") {
  for (size_t size = 0; size < 70; ++size) {
    REQUIRE(crc32c(bytes_of(sample_bytes(size))) == bit_by_bit(sample_bytes(size)));
  }
}

TEST_CASE("the payload comes back if nothing was changed, else an error", "[zarr][crc32c]") {
  const std::string payload = sample_bytes(500);
  REQUIRE(decode(kCodec, with_checksum(payload), 500) == payload);
  REQUIRE(decode(kCodec, with_checksum(payload), 600, false) == payload);
  REQUIRE_THROWS_AS(decode(kCodec, with_checksum(payload), 499, false), DataError);
  REQUIRE_THROWS_WITH(decode(kCodec, with_checksum(payload), 501), ContainsSubstring("size"));
  test::for_each_damage(with_checksum(payload), [&](const std::string& damaged) {
    REQUIRE_THROWS_AS(decode(kCodec, damaged, 500, false), DataError);
  });
}
