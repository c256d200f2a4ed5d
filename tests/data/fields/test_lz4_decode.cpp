// SPDX-License-Identifier: Apache-2.0
// liblz4 compresses, and says what streams decode to; a warp is emulated on the host, its lanes one
// after the other in either order.
#include "data/fields/lz4_decode.h"

#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::data;

namespace {

constexpr size_t kGuard = 64;  // bytes around each buffer, which must stay as they are
constexpr uint8_t kMark = 0xa5;

// Lanes that run one after the other, and an input that knows its end.
template <uint32_t count, bool backwards>
class EmulatedLanes {
 public:
  static constexpr uint32_t kCount = count;

  EmulatedLanes(const uint8_t* from, uint32_t num_in) : from_(from), num_in_(num_in) {}
  template <class Body>
  void each(Body body) const {
    for (uint32_t lane = 0; lane < count; ++lane)
      body(backwards ? count - 1 - lane : lane);
  }
  void sync() const {}
  uint32_t byte(uint32_t at) const {
    AIFS_CHECK(at < num_in_, "byte ", at, " of ", num_in_);
    return from_[at];
  }

 private:
  const uint8_t* from_;
  uint32_t num_in_;
};

struct Decoded {
  bool is_sound = false;
  std::string bytes;
};

// Decodes to `size` bytes at `shift` bytes from an aligned address.
template <class Lanes>
Decoded decode_with(const std::string& encoded, size_t size, size_t shift) {
  // Exactly as large as the input, so that a sanitizer sees what is read beyond it.
  const std::vector<uint8_t> in(encoded.begin(), encoded.end());
  std::vector<uint8_t> out(size + shift + 2 * kGuard, kMark);
  uint8_t* to = out.data() + kGuard + shift;
  Lanes lanes(in.data(), static_cast<uint32_t>(in.size()));
  Decoded decoded;
  decoded.is_sound = decode_lz4(lanes, in.data(), static_cast<uint32_t>(in.size()), to,
                                static_cast<uint32_t>(size));
  const auto is_mark = [](uint8_t byte) { return byte == kMark; };
  REQUIRE(std::all_of(out.data(), to, is_mark));
  REQUIRE(std::all_of(to + size, out.data() + out.size(), is_mark));
  decoded.bytes.assign(to, to + size);
  return decoded;
}

// Decodes with several numbers and orders of lanes, which must agree.
Decoded decode(const std::string& encoded, size_t size, size_t shift = 0) {
  const Decoded one = decode_with<EmulatedLanes<1, false>>(encoded, size, shift);
  for (const Decoded& other : {decode_with<EmulatedLanes<32, false>>(encoded, size, shift),
                               decode_with<EmulatedLanes<32, true>>(encoded, size, shift + 1)}) {
    REQUIRE(other.is_sound == one.is_sound);
    if (one.is_sound) REQUIRE((other.bytes == one.bytes));
  }
  return one;
}

Decoded decode_by_liblz4(const std::string& encoded, size_t size) {
  Decoded decoded{.bytes = std::string(size, '\0')};
  decoded.is_sound =
      LZ4_decompress_safe(encoded.data(), decoded.bytes.data(), static_cast<int>(encoded.size()),
                          static_cast<int>(size)) == static_cast<int>(size);
  return decoded;
}

std::string encode(const std::string& plain, int level = 0) {
  std::string encoded(static_cast<size_t>(LZ4_compressBound(static_cast<int>(plain.size()))), '\0');
  const auto size = static_cast<int>(plain.size()), room = static_cast<int>(encoded.size());
  const int written = level > 0
                          ? LZ4_compress_HC(plain.data(), encoded.data(), size, room, level)
                          : LZ4_compress_fast(plain.data(), encoded.data(), size, room, 1 - level);
  REQUIRE(written > 0);
  encoded.resize(static_cast<size_t>(written));
  return encoded;
}

// Bytes with noise, runs, and repetitions at all distances.
std::string mixed_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes;
  while (bytes.size() < size) {
    const size_t count = 1 + (random() % 8 == 0 ? random() % 3000 : random() % 40);
    const uint32_t kind = random() % 4;
    if (kind == 0 || bytes.empty()) {
      for (size_t i = 0; i < count; ++i)
        bytes += static_cast<char>(random());
    } else if (kind == 1) {
      bytes.append(count, static_cast<char>(random() % 3));
    } else {
      const size_t most = std::min<size_t>(bytes.size(), kind == 2 ? 40 : 65535);
      const size_t offset = 1 + random() % most;
      for (size_t i = 0; i < count; ++i)
        bytes += bytes[bytes.size() - offset];
    }
  }
  bytes.resize(size);
  return bytes;
}

// A sequence of `literals`, and a match unless `offset` is negative.
std::string sequence(const std::string& literals, int offset = -1, size_t match = 4) {
  const auto rest = [](size_t length) {
    std::string bytes;
    if (length < 15) return bytes;
    for (length -= 15; length >= 255; length -= 255)
      bytes += '\xff';
    return bytes + static_cast<char>(length);
  };
  const size_t extra = offset < 0 ? 0 : match - 4;
  std::string bytes(1, static_cast<char>(std::min<size_t>(literals.size(), 15) << 4 |
                                         std::min<size_t>(extra, 15)));
  bytes += rest(literals.size()) + literals;
  if (offset < 0) return bytes;
  bytes += static_cast<char>(offset & 255);
  bytes += static_cast<char>(offset >> 8);
  return bytes + rest(extra);
}

}  // namespace

TEST_CASE("streams decode to what was compressed", "[lz4_decode]") {
  for (const size_t size : {1, 4, 12, 13, 17, 100, 127, 128, 129, 1000, 65536, 200001}) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
      const std::string plain = mixed_bytes(size, seed);
      for (const int level : {0, -20, 9}) {
        INFO(size << " bytes, seed " << seed << ", level " << level);
        const Decoded decoded = decode(encode(plain, level), size, seed);
        REQUIRE(decoded.is_sound);
        REQUIRE((decoded.bytes == plain));
      }
    }
  }
}

TEST_CASE("matches repeat every period, whatever their length", "[lz4_decode]") {
  const std::string tail = "12345 and more than 12";
  for (const int offset :
       {1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 129, 300}) {
    for (const size_t match : {4, 5, 18, 19, 31, 32, 33, 127, 128, 129, 273, 274, 1000, 70000}) {
      const std::string literals = mixed_bytes(static_cast<size_t>(offset), 3);
      std::string plain = literals;
      for (size_t i = 0; i < match; ++i)
        plain += plain[plain.size() - static_cast<size_t>(offset)];
      plain += tail;
      const std::string encoded = sequence(literals, offset, match) + sequence(tail);
      INFO("offset " << offset << ", length " << match);
      const Decoded decoded = decode(encoded, plain.size(), match % 4);
      REQUIRE(decoded.is_sound);
      REQUIRE((decoded.bytes == plain));
      REQUIRE((decode_by_liblz4(encoded, plain.size()).bytes == plain));
    }
  }
}

TEST_CASE("impossible lengths and offsets are damage", "[lz4_decode]") {
  const std::string text = "sixteen letters!", tail = "twelve bytes";
  const auto is_sound = [](const std::string& encoded, size_t size) {
    return decode(encoded, size).is_sound;
  };
  const std::string good = sequence(text, 16, 20) + sequence(tail);
  REQUIRE(is_sound(good, 48));
  REQUIRE_FALSE(is_sound("", 48));
  REQUIRE_FALSE(is_sound(good, 47));
  REQUIRE_FALSE(is_sound(good, 49));
  REQUIRE_FALSE(is_sound(good.substr(0, good.size() - 1), 48));
  REQUIRE_FALSE(is_sound(good + "x", 48));
  REQUIRE_FALSE(is_sound(sequence(text, 17, 20) + sequence(tail), 48));  // before the beginning
  REQUIRE_FALSE(is_sound(sequence(text, 0, 20) + sequence(tail), 48));
  REQUIRE_FALSE(is_sound(sequence(text, 16, 20), 36));                       // ends with a match
  REQUIRE_FALSE(is_sound(sequence(text, 16, 20) + sequence("four"), 40));    // too few literals
  REQUIRE_FALSE(is_sound(sequence(text, 16, 4) + sequence("seven b"), 27));  // match too late
  REQUIRE_FALSE(is_sound(std::string(1, '\xf0') + std::string(3000, '\xff'), 100));
  REQUIRE_FALSE(is_sound(sequence("", 1, 20) + sequence(tail), 32));  // nothing to repeat
}

TEST_CASE("damaged streams write nothing outside, and are judged as liblz4 does", "[lz4_decode]") {
  std::mt19937 random(11);
  int num_damaged = 0, num_sound = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const size_t size = 1 + random() % 400;
    std::string encoded = encode(mixed_bytes(size, static_cast<uint32_t>(trial)));
    for (uint32_t i = random() % 4; i > 0; --i)
      encoded[random() % encoded.size()] = static_cast<char>(random());
    if (random() % 8 == 0) encoded.resize(random() % encoded.size());
    if (random() % 8 == 0) encoded += static_cast<char>(random());
    const size_t wanted = random() % 8 == 0 ? 1 + random() % 500 : size;
    const Decoded decoded = decode(encoded, wanted, trial % 4);
    const Decoded expected = decode_by_liblz4(encoded, wanted);
    // liblz4 may take an offset of 0, whose bytes it does not define.
    if (decoded.is_sound) {
      INFO("trial " << trial);
      REQUIRE(expected.is_sound);
      REQUIRE((decoded.bytes == expected.bytes));
    }
    const bool has_zero_offset = encoded.find(std::string(2, '\0')) != std::string::npos;
    if (expected.is_sound && !has_zero_offset) REQUIRE(decoded.is_sound);
    (decoded.is_sound ? num_sound : num_damaged) += 1;
  }
  REQUIRE(num_sound > 4000);
  REQUIRE(num_damaged > 4000);
}

TEST_CASE("random bytes never lead outside", "[lz4_decode]") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string encoded(1 + random() % 60, '\0');
    for (char& byte : encoded)
      byte = static_cast<char>(random() % 3 == 0 ? random() % 20 : random());
    const size_t size = 1 + random() % 300;
    if (decode(encoded, size).is_sound) REQUIRE(decode_by_liblz4(encoded, size).is_sound);
  }
}
