// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/codec.h"

#include "core/check.h"
#include "data/zarr/codec_factory.h"
#include "tests/support/catch.h"
#include "tests/support/codec_test.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

// Takes a letter off the front, if it is the right one.
class LetterCodec : public Codec {
 public:
  explicit LetterCodec(char letter) : letter_(letter) {}
  const char* name() const override { return "letter"; }
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override {
    if (encoded[0] != std::byte(letter_)) throw_corrupt("wrong letter");
    if (encoded.size() - 1 > request.size) throw_wrong_size(encoded.size() - 1, request.size);
    decoded.resize(encoded.size() - 1);
    std::copy(encoded.begin() + 1, encoded.end(), decoded.data());
  }

 private:
  char letter_;
};

std::string run(const CodecChain& chain, const std::string& encoded, const DecodeRequest& request) {
  Buffer bytes, spare;
  bytes.resize(encoded.size());
  std::copy(encoded.begin(), encoded.end(), static_cast<char*>(static_cast<void*>(bytes.data())));
  const Buffer& decoded = chain.decode(request, bytes, spare);
  return {static_cast<const char*>(static_cast<const void*>(decoded.data())), decoded.size()};
}

CodecChain chain_of(const std::string& letters) {
  std::vector<std::shared_ptr<const Codec>> codecs;
  for (const char letter : letters)
    codecs.push_back(std::make_shared<LetterCodec>(letter));
  return CodecChain(codecs);
}

}  // namespace

TEST_CASE("a chain decodes from its last codec to its first", "[zarr][codec]") {
  REQUIRE(run(chain_of("abc"), "cbaTEXT", {.size = 4}) == "TEXT");
  REQUIRE_THROWS_AS(run(chain_of("abc"), "abcTEXT", {.size = 4}), DataError);
  REQUIRE(chain_of("ab").names() == "letter, letter");
}

TEST_CASE("without codecs the bytes are the chunk", "[zarr][codec]") {
  REQUIRE(CodecChain().empty());
  REQUIRE(run({}, "TEXT", {.size = 4}) == "TEXT");
  REQUIRE(run({}, "TEXT", {.size = 9, .exact = false}) == "TEXT");
}

TEST_CASE("nothing is no chunk, and a wrong size is named", "[zarr][codec]") {
  REQUIRE_THROWS_WITH(run({}, "", {.size = 4}), ContainsSubstring("empty"));
  REQUIRE_THROWS_WITH(run(chain_of("ab"), "", {.size = 4}), ContainsSubstring("empty"));
  REQUIRE_THROWS_WITH(run(chain_of("ab"), "b", {.size = 4}), ContainsSubstring("empty"));
  REQUIRE_THROWS_WITH(run({}, "TEX", {.size = 4}), ContainsSubstring("sizes do not agree"));
}

TEST_CASE("unknown codecs are refused, the two formats have their own", "[zarr][codec]") {
  for (const char* id : {"blosc", "zstd", "zlib", "gzip", "lz4"})
    REQUIRE(std::string(make_codec_v2(id)->name()) == id);
  for (const char* name : {"blosc", "zstd", "gzip", "crc32c"})
    REQUIRE(std::string(make_codec_v3(name)->name()) == name);
  for (const char* id : {"", "bz2", "crc32c", "quantum"})
    REQUIRE_THROWS_WITH(make_codec_v2(id), ContainsSubstring("codec"));
  for (const char* name : {"", "zlib", "lz4", "numcodecs.zlib", "bytes"})
    REQUIRE_THROWS_WITH(make_codec_v3(name), ContainsSubstring("codec"));
}
