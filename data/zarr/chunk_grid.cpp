// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/chunk_grid.h"

#include <algorithm>

#include "core/check.h"
#include "core/product.h"

namespace aifs::zarr {

int64_t Region::num_items() const {
  int64_t result = 1;
  for (size_t axis = 0; axis < begin.size(); ++axis)
    result *= end[axis] - begin[axis];
  return result;
}

Region Region::whole(const std::vector<int64_t>& shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape};
}

int64_t ChunkPart::num_items() const {
  return product(extent);
}

ChunkGrid::ChunkGrid(std::vector<int64_t> shape, std::vector<int64_t> chunk_shape)
    : shape_(std::move(shape)), chunk_shape_(std::move(chunk_shape)) {
  AIFS_CHECK(shape_.size() == chunk_shape_.size());
  AIFS_CHECK(std::all_of(chunk_shape_.begin(), chunk_shape_.end(), [](auto c) { return c >= 1; }));
}

int64_t ChunkGrid::items_per_chunk() const {
  return product(chunk_shape_);
}

void ChunkGrid::for_each_part(const Region& region,
                              const std::function<void(const ChunkPart&)>& visit) const {
  const size_t rank = shape_.size();
  AIFS_CHECK(region.begin.size() == rank && region.end.size() == rank, "region of rank ",
             region.begin.size(), " in an array of rank ", rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    AIFS_CHECK(0 <= region.begin[axis] && region.begin[axis] <= region.end[axis] &&
                   region.end[axis] <= shape_[axis],
               "axis ", axis, ": [", region.begin[axis], ", ", region.end[axis], ") of ",
               shape_[axis]);
  }
  if (region.num_items() == 0) return;

  ChunkPart part;
  for (std::vector<int64_t>* member : {&part.chunk, &part.in_chunk, &part.in_region, &part.extent})
    member->resize(rank);
  const auto enter = [&](size_t axis, int64_t chunk) {
    const int64_t corner = chunk * chunk_shape_[axis];
    const int64_t first = std::max(region.begin[axis], corner);
    part.chunk[axis] = chunk;
    part.in_chunk[axis] = first - corner;
    part.in_region[axis] = first - region.begin[axis];
    part.extent[axis] = std::min(region.end[axis] - first, corner + chunk_shape_[axis] - first);
  };
  for (size_t axis = 0; axis < rank; ++axis)
    enter(axis, region.begin[axis] / chunk_shape_[axis]);

  for (;;) {
    visit(part);
    size_t axis = rank;  // step the last axis that is not at its end, reset those behind it
    while (axis > 0) {
      --axis;
      const bool at_end =
          part.in_region[axis] + part.extent[axis] == region.end[axis] - region.begin[axis];
      enter(axis, at_end ? region.begin[axis] / chunk_shape_[axis] : part.chunk[axis] + 1);
      if (!at_end) break;
      if (axis == 0) return;
    }
    if (rank == 0) return;
  }
}

}  // namespace aifs::zarr
