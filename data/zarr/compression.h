// SPDX-License-Identifier: Apache-2.0
// How chunks that are written here are compressed, and how metadata of both formats say so.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "data/zarr/buffer.h"
#include "data/zarr/json_text.h"

namespace aifs::zarr {

struct Compression {
  enum class Kind { kNone, kBlosc, kZstd };
  Kind kind = Kind::kBlosc;
  std::string inner = "lz4";  // codec of Blosc's blocks
  int level = 5;
  int shuffle = 1;  // of Blosc: 0 none, 1 bytes, 2 bits

  // "blosc-lz4", "blosc-lz4hc", "blosc-zstd", "blosc-zlib", "blosc-blosclz", "zstd", "none"; the
  // level is the usual one of the codec if it is not given. Throws ConfigError that lists them, or
  // the levels there are.
  static Compression parse(const std::string& name, std::optional<int64_t> level = std::nullopt);
  // "blosc-lz4, level 5, byte shuffle".
  std::string text() const;
  friend bool operator==(const Compression&, const Compression&) = default;
};

// The compression that metadata of an array name, `format` 2 (.zarray) or 3 (zarr.json, of the
// chunks in a shard); nothing if it is another one than Compression can be. The metadata are those
// of an array that can be read.
std::optional<Compression> compression_of(const Json& metadata, int format);
// The codecs of metadata as a text for people, whatever they are.
std::string describe_codecs(const Json& metadata, int format);

// The member "compressor" of format 2.
Json compressor_v2(const Compression& compression);
// The list "codecs" of format 3 for items of so many bytes.
Json codecs_v3(const Compression& compression, int64_t item_bytes);

// Encodes a chunk; `encoded` holds exactly the result, the same for any number of threads, of which
// only Blosc takes more than one. Throws Error if the library fails.
void encode(const Compression& compression, std::span<const std::byte> items, int64_t item_bytes,
            Buffer& encoded, int threads = 1);

}  // namespace aifs::zarr
