// SPDX-License-Identifier: Apache-2.0
// What all tests of codecs need.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/check.h"
#include "core/rng.h"
#include "data/zarr/codec.h"

namespace aifs::test {

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The decoded text. Throws what the codec throws.
inline std::string decode(const zarr::Codec& codec, const std::string& encoded, size_t size,
                          bool exact = true) {
  zarr::Buffer decoded;
  // A copy of exactly this size, so that a sanitizer sees every read beyond its end.
  zarr::Buffer copy;
  copy.resize(encoded.size());
  std::copy(encoded.begin(), encoded.end(), static_cast<char*>(static_cast<void*>(copy.data())));
  codec.decode(copy.bytes(), {.size = size, .exact = exact}, decoded);
  return {static_cast<const char*>(static_cast<const void*>(decoded.data())), decoded.size()};
}

// Decodes, or returns nothing if the codec refuses.
inline std::optional<std::string> try_decode(const zarr::Codec& codec, const std::string& encoded,
                                             size_t size) {
  try {
    return decode(codec, encoded, size);
  } catch (const DataError& error) {
    // In our words: no numbers in brackets, none of what libraries call their errors.
    const std::string_view text = error.what();
    for (const char* foreign : {"(-", "ZSTD", "incorrect", "invalid", "Corrupted", "Unknown"}) {
      AIFS_CHECK(text.find(foreign) == std::string_view::npos, "'", text, "' says '", foreign, "'");
    }
    return std::nullopt;
  }
}

// Bytes that compress, but not to nothing.
inline std::string sample_bytes(size_t size, uint64_t seed = 3) {
  const CounterRng rng(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i % 4 == 0 ? rng.bits(i) % 16 : i / 64);
  return bytes;
}

// Calls check(damaged) for many ways to damage `encoded`: every truncation of short texts, some of
// long ones, and single flipped bytes.
template <class Check>
void for_each_damage(const std::string& encoded, Check&& check) {
  const size_t step = 1 + encoded.size() / 200;
  for (size_t size = 0; size < encoded.size(); size += step)
    check(encoded.substr(0, size));
  const CounterRng rng(17);
  for (size_t i = 0; i < encoded.size(); i += i < 64 ? 1 : step) {
    for (const int flip : {0x01, 0x80, 0xff, static_cast<int>(rng.bits(i) % 255 + 1)}) {
      std::string damaged = encoded;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      check(damaged);
    }
  }
}

}  // namespace aifs::test
