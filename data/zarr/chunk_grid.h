// SPDX-License-Identifier: Apache-2.0
// Regular chunks over an array: which chunks a hyperslab touches, and which part of each. Pure
// arithmetic. Chunk i of an axis covers [i * c, (i + 1) * c); the last one may overhang the array.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace aifs::zarr {

// A hyperslab: [begin, end) on every axis.
struct Region {
  std::vector<int64_t> begin, end;

  int64_t num_items() const;
  // All of an array.
  static Region whole(const std::vector<int64_t>& shape);
};

// The part of a region that lies in one chunk. All members have one entry per axis.
struct ChunkPart {
  std::vector<int64_t> chunk;      // coordinates of the chunk in the grid
  std::vector<int64_t> in_chunk;   // first item, counted from the corner of the chunk
  std::vector<int64_t> in_region;  // first item, counted from the corner of the region
  std::vector<int64_t> extent;     // items

  int64_t num_items() const;
};

class ChunkGrid {
 public:
  ChunkGrid() = default;
  // Precondition: same rank, all chunk lengths >= 1.
  ChunkGrid(std::vector<int64_t> shape, std::vector<int64_t> chunk_shape);

  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& chunk_shape() const { return chunk_shape_; }
  // Items of one chunk.
  int64_t items_per_chunk() const;

  // Visits the parts of `region`, chunks in C order; nothing if the region is empty. The argument
  // is only valid during the call. Throws Error if the region is not inside the array.
  void for_each_part(const Region& region,
                     const std::function<void(const ChunkPart&)>& visit) const;

 private:
  std::vector<int64_t> shape_, chunk_shape_;
};

}  // namespace aifs::zarr
