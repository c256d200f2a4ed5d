// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/needed_bytes.h"

namespace aifs::zarr {

namespace {

constexpr size_t kMaxRuns = 4096;

struct Walk {
  const ChunkLayout& layout;
  const ChunkPart& part;
  const std::vector<int64_t> strides;
  int64_t item_bytes;
  std::vector<ByteRange>& ranges;

  // Items of the part from the k-th slowest axis on, in one piece? Then how many.
  int64_t contiguous_items(size_t k) const {
    int64_t items = 1;
    bool inner_is_whole = true;
    for (size_t i = layout.axis_order.size(); i-- > k;) {
      const size_t axis = layout.axis_order[i];
      if (!inner_is_whole && part.extent[axis] > 1) return 0;
      items *= part.extent[axis];
      inner_is_whole = inner_is_whole && part.extent[axis] == layout.shape[axis];
    }
    return items;
  }

  bool append(int64_t first_item, int64_t items) {
    const auto begin = static_cast<size_t>(first_item * item_bytes);
    const auto end = begin + static_cast<size_t>(items * item_bytes);
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end = end;
    } else {
      ranges.push_back({begin, end});
    }
    return ranges.size() <= kMaxRuns;
  }

  // All runs below the k-th slowest axis, the slower ones being at `offset`.
  bool visit(size_t k, int64_t offset) {
    const int64_t items = contiguous_items(k);
    if (items > 0) {
      for (size_t i = k; i < layout.axis_order.size(); ++i) {
        const size_t axis = layout.axis_order[i];
        offset += part.in_chunk[axis] * strides[axis];
      }
      return append(offset, items);
    }
    const size_t axis = layout.axis_order[k];
    for (int64_t i = 0; i < part.extent[axis]; ++i) {
      if (!visit(k + 1, offset + (part.in_chunk[axis] + i) * strides[axis])) return false;
    }
    return true;
  }
};

}  // namespace

bool append_needed_bytes(const ChunkLayout& layout, int64_t item_bytes, const ChunkPart& part,
                         std::vector<ByteRange>& ranges) {
  Walk walk{layout, part, layout.strides(), item_bytes, ranges};
  return walk.visit(0, 0);
}

}  // namespace aifs::zarr
