// SPDX-License-Identifier: Apache-2.0
// Blosc buffers (format version 2, c-blosc 1): shuffled blocks compressed by LZ4, Zstandard, ...
// Each block can be decoded alone, so a part of a chunk costs only the blocks it touches.
#pragma once

#include <string>

#include "data/zarr/codec.h"

namespace aifs::zarr {

inline constexpr size_t kBloscHeaderBytes = 16;

// Describes what every buffer starts with.
struct BloscHeader {
  size_t decoded_bytes = 0;  // nbytes
  size_t block_bytes = 0;    // blocksize
  size_t encoded_bytes = 0;  // cbytes, with the header
  size_t type_bytes = 0;     // typesize, the unit of shuffling
  bool copied = false;       // stored as it is, neither shuffled nor compressed
  int inner_codec = 0;       // number of the codec of the blocks

  size_t num_blocks() const { return (decoded_bytes + block_bytes - 1) / block_bytes; }
};

// Reads and checks the header; with a request, the decoded size first, because a chunk of another
// shape or type explains whatever else is odd. Throws DataError.
BloscHeader read_blosc_header(std::span<const std::byte> encoded,
                              const DecodeRequest* request = nullptr);
// Reads it where only the beginning of the `size` encoded bytes is at hand.
BloscHeader read_blosc_header(std::span<const std::byte> head, size_t size,
                              const DecodeRequest* request);

// "lz4". Throws DataError if the number is unknown, or the codec not among those that the library
// was built with.
std::string inner_codec_name(int inner_codec);

class BloscCodec : public Codec {
 public:
  const char* name() const override { return "blosc"; }
  // Decodes only the blocks that hold `request.needed`, if that is a good part fewer.
  void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
              Buffer& decoded) const override;
};

}  // namespace aifs::zarr
