// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec_zlib.h"

#include <zlib.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;
using test::decode;
using test::sample_bytes;

namespace {

std::string encode(const std::string& plain, DeflateWrapping wrapping) {
  z_stream stream{};
  const int window = wrapping == DeflateWrapping::kGzip ? 16 + MAX_WBITS : MAX_WBITS;
  REQUIRE(::deflateInit2(&stream, 1, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string encoded(::deflateBound(&stream, plain.size()), '\0');
  stream.next_in =
      const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(plain.data())));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = static_cast<Bytef*>(static_cast<void*>(encoded.data()));
  stream.avail_out = static_cast<uInt>(encoded.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  encoded.resize(stream.total_out);
  ::deflateEnd(&stream);
  return encoded;
}

}  // namespace

TEST_CASE("zlib and gzip streams come back", "[zarr][zlib]") {
  for (const auto wrapping : {DeflateWrapping::kZlib, DeflateWrapping::kGzip}) {
    const DeflateCodec codec(wrapping);
    for (const size_t size : {1, 1000, 300000}) {
      const std::string plain = sample_bytes(size), encoded = encode(plain, wrapping);
      REQUIRE(decode(codec, encoded, size) == plain);
      REQUIRE(decode(codec, encoded, 2 * size, false) == plain);
      for (const size_t wrong : {size - 1, size + 1}) {
        REQUIRE_THROWS_WITH(decode(codec, encoded, wrong), ContainsSubstring("size"));
      }
      REQUIRE_THROWS_AS(decode(codec, encoded, size - 1, false), DataError);
      REQUIRE_THROWS_WITH(decode(codec, encoded + "x", size), ContainsSubstring("corrupt"));
    }
  }
}

TEST_CASE("a stream in the other wrapping is refused", "[zarr][zlib]") {
  const std::string plain = sample_bytes(100);
  REQUIRE_THROWS_AS(
      decode(DeflateCodec(DeflateWrapping::kZlib), encode(plain, DeflateWrapping::kGzip), 100),
      DataError);
  REQUIRE_THROWS_AS(
      decode(DeflateCodec(DeflateWrapping::kGzip), encode(plain, DeflateWrapping::kZlib), 100),
      DataError);
}

TEST_CASE("what is wrong with a stream is said in our words", "[zarr][zlib]") {
  const std::string plain = sample_bytes(3000), good = encode(plain, DeflateWrapping::kZlib);
  const DeflateCodec codec(DeflateWrapping::kZlib);
  REQUIRE_THROWS_WITH(decode(codec, good.substr(0, good.size() / 2), 3000),
                      ContainsSubstring("the zlib stream ends too early"));
  REQUIRE_THROWS_WITH(decode(codec, "<html></html>", 3000),
                      ContainsSubstring("does not begin as a zlib stream does"));
  std::string damaged = good;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);  // of the checksum
  REQUIRE_THROWS_WITH(decode(codec, damaged, 3000),
                      ContainsSubstring("the zlib stream is damaged"));
  std::string with_dictionary = good;
  with_dictionary[1] = static_cast<char>(0xbb);  // flag FDICT, and its check bits
  REQUIRE_THROWS_WITH(decode(codec, with_dictionary, 3000), ContainsSubstring("dictionary"));
}

TEST_CASE("damage to a stream is found by its checksum", "[zarr][zlib]") {
  const std::string plain = sample_bytes(3000);
  for (const auto wrapping : {DeflateWrapping::kZlib, DeflateWrapping::kGzip}) {
    const DeflateCodec codec(wrapping);
    test::for_each_damage(encode(plain, wrapping), [&](const std::string& damaged) {
      // gzip's time stamp may change and change nothing
      REQUIRE(test::try_decode(codec, damaged, plain.size()).value_or(plain) == plain);
    });
  }
}
