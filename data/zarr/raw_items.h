// SPDX-License-Identifier: Apache-2.0
// Items of an array bit for bit, for copies: whatever the type, nothing is rounded. Of a type
// without byte order, or little endian.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/zarr/array.h"

namespace aifs::zarr {

// The items of a region in C order, in `out` (of just that size). Absent chunks give the fill
// value; the parts of the region that they cover are added to `absent`, counted in the array.
// Thread-safe. Throws DataError.
void read_raw(const Array& array, const Region& region, std::span<std::byte> out,
              std::vector<Region>& absent, ChunkScratch& scratch);

// True if the regions, which do not overlap each other, hold all of `region`.
bool covers(const std::vector<Region>& regions, const Region& region);

// Returns where a block of items begins in an array of a shape.
struct BlockPlace {
  std::vector<int64_t> shape, first;
};
// Copies a block of items between C-ordered arrays that hold it: `extent` items along each axis,
// from `from_place` to `to_place`.
void copy_block(const std::byte* from, const BlockPlace& from_place, std::byte* to,
                const BlockPlace& to_place, const std::vector<int64_t>& extent, int64_t item_bytes);

// One item of the fill value; zeros if it is undefined.
std::vector<std::byte> fill_item(const DataType& type, const FillValue& fill);

}  // namespace aifs::zarr
