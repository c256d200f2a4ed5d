// SPDX-License-Identifier: Apache-2.0
// Bytes-to-bytes codecs, and their chain. One codec per file; codec_factory.h knows them all.
//
// The size of a decoded chunk is known from its shape before anything is decoded, so a codec never
// believes what the encoded bytes say of their size: a damaged file cannot make it allocate much.
// Errors are DataErrors without the name of the file: zarr::in_file() adds it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/zarr/buffer.h"

namespace aifs::zarr {

// Bytes [begin, end).
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

struct DecodeRequest {
  size_t size = 0;    // decoded bytes: so many, or if not `exact`, at most so many
  bool exact = true;  // the chunk shape gives the size
  // With `exact`: the bytes that will be looked at, ascending and disjoint; others may stay
  // undefined. Empty: all.
  std::span<const ByteRange> needed = {};
};

// Immutable, hence thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual const char* name() const = 0;
  // Resizes `decoded` and fills it. `encoded` is not empty. The two must not overlap.
  virtual void decode(std::span<const std::byte> encoded, const DecodeRequest& request,
                      Buffer& decoded) const = 0;
};

// Throws a codec's error where sizes differ, and where the bytes make no sense.
[[noreturn]] void throw_wrong_size(size_t decoded_bytes, size_t expected_bytes);
[[noreturn]] void throw_corrupt(const std::string& why);

class CodecChain {
 public:
  CodecChain() = default;
  // In the order of encoding.
  explicit CodecChain(std::vector<std::shared_ptr<const Codec>> codecs)
      : codecs_(std::move(codecs)) {}

  bool empty() const { return codecs_.empty(); }
  // True if there is one codec, of this name.
  bool is_only(std::string_view name) const {
    return codecs_.size() == 1 && name == codecs_[0]->name();
  }
  // "zstd, crc32c".
  std::string names() const;

  // The most bytes that `decoded_bytes` can sensibly take when encoded.
  static size_t max_encoded_bytes(size_t decoded_bytes) { return 2 * decoded_bytes + 65536; }

  // Decodes `encoded`; the result is in the buffer that is returned, one of the two. With one codec
  // that is `other`, so that buffers which are used again keep their sizes.
  Buffer& decode(const DecodeRequest& request, Buffer& encoded, Buffer& other) const;

 private:
  std::vector<std::shared_ptr<const Codec>> codecs_;
};

}  // namespace aifs::zarr
