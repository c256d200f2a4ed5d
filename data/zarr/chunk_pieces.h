// SPDX-License-Identifier: Apache-2.0
// A chunk opened for decoding in pieces that threads share: the blocks of a Blosc buffer, or the
// whole chunk where its codecs know no parts.
#pragma once

#include <cstdint>
#include <memory>

#include "data/zarr/blosc_blocks.h"
#include "data/zarr/buffer.h"

namespace aifs::zarr {

// Items [begin, end) of a chunk in memory order.
struct ItemRange {
  int64_t begin = 0, end = 0;
};

class ChunkPieces {
 public:
  virtual ~ChunkPieces() = default;
  virtual size_t num_pieces() const = 0;
  virtual ItemRange items(size_t piece) const = 0;
  // Decodes the `needed` items of a piece (counted in the chunk), and no more than that takes;
  // what the view has of others is undefined. Its first item is that of the piece. The view lies in
  // the scratch. Thread-safe. Throws DataError naming the file of the chunk.
  virtual BlockView decode(size_t piece, ItemRange needed, ChunkScratch& scratch) const = 0;
  // Tells the system that all of it will be read soon.
  virtual void prefetch() const {}
};

}  // namespace aifs::zarr
