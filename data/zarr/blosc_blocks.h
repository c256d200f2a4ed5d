// SPDX-License-Identifier: Apache-2.0
// Blosc buffers read and decoded block by block, without the rest of the buffer: threads share one
// chunk, and a part of a chunk costs the blocks that it touches. A block is left as Blosc shuffles
// it (all first bytes of its items, all second bytes, ...), so that whoever uses the values can put
// the bytes together while they are in the cache.
//
// Source: c-blosc 1.21, blosc.c (blosc_d and README_CHUNK_FORMAT.rst).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "data/zarr/blosc_stream.h"
#include "data/zarr/codec.h"
#include "data/zarr/codec_blosc.h"
#include "data/zarr/store.h"

namespace aifs::zarr {

// Items of a block. Byte b of item i is bytes[b * plane_bytes + i] if planar, else
// bytes[i * item_bytes + b].
struct BlockView {
  const std::byte* bytes = nullptr;
  bool planar = false;
  size_t plane_bytes = 0;
};

class BloscBlocks {
 public:
  // Reads header and table of the `size` bytes of `file` from `offset` on. The decoded bytes must
  // be `decoded_bytes`, items of `item_bytes`. Null if the buffer is one that only c-blosc can
  // decode (bit shuffle, BloscLZ, Snappy, items of another size). Throws DataError, without the
  // name of the file, if it is damaged.
  static std::unique_ptr<BloscBlocks> open(const ValueFile& file, size_t offset, size_t size,
                                           size_t decoded_bytes, size_t item_bytes);

  size_t num_blocks() const { return header_.num_blocks(); }
  // Decoded bytes of a block; whole items.
  ByteRange range(size_t block) const;
  // Returns the decoded bytes of every block but the last, which may have fewer.
  size_t block_bytes() const { return header_.block_bytes; }
  // Returns true if the bytes of each block are shuffled.
  bool is_shuffled() const { return shuffled_; }
  // Returns true if streams() can name the streams: they are LZ4 or copied.
  bool has_lz4_streams() const { return format_ == Format::kLz4 || format_ == Format::kCopied; }
  // Lists the streams of all blocks in the order of their decoded bytes, which they cover without
  // gaps. Encoded ranges lie within the buffer. Reads four bytes of the file for each stream.
  // Precondition: has_lz4_streams(). Throws DataError, without the name of the file, if a length is
  // impossible.
  std::vector<BloscStream> streams(const ValueFile& file) const;
  // Decodes a block as far as the items in the bytes `needed` of the decoded buffer need it; others
  // are undefined. The result lies in the scratch. Throws DataError, without the name of the file.
  // Thread-safe.
  BlockView decode(const ValueFile& file, size_t block, ByteRange needed,
                   ChunkScratch& scratch) const;

 private:
  enum class Format { kCopied, kLz4, kZlib, kZstd };

  BloscBlocks() = default;
  void read_table(const ValueFile& file, size_t offset);
  // Returns the number of streams of a block. A shorter last block is one stream.
  size_t num_streams(size_t block) const;
  // Decodes one stream of `size` bytes, or as much of it as `wanted`.
  void decode_stream(std::span<const std::byte> encoded, std::byte* out, size_t size,
                     size_t wanted) const;
  // Decodes bytes `needed` of every stream of a shuffled block, reading little else of the file.
  void decode_streams_in_part(const ValueFile& file, size_t block, ByteRange needed,
                              ChunkScratch& scratch) const;

  BloscHeader header_;
  Format format_ = Format::kCopied;
  bool shuffled_ = false, split_ = false;
  size_t offset_ = 0;               // of the buffer in the file
  std::vector<ByteRange> encoded_;  // of each block, within the buffer
};

}  // namespace aifs::zarr
