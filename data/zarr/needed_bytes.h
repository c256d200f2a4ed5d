// SPDX-License-Identifier: Apache-2.0
// Which bytes of a decoded chunk a read will look at, so that codecs can leave out the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "data/zarr/array_meta.h"
#include "data/zarr/chunk_grid.h"
#include "data/zarr/codec.h"

namespace aifs::zarr {

// Appends the bytes of one part of a chunk, in memory order, as runs that do not touch. Gives up
// and returns false if these are more than a few thousand runs: then everything is needed.
bool append_needed_bytes(const ChunkLayout& layout, int64_t item_bytes, const ChunkPart& part,
                         std::vector<ByteRange>& ranges);

}  // namespace aifs::zarr
