// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/needed_bytes.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

ChunkPart part_of(std::vector<int64_t> first, std::vector<int64_t> extent) {
  ChunkPart part;
  part.in_chunk = std::move(first);
  part.extent = std::move(extent);
  return part;
}

// Byte by byte.
std::set<size_t> brute_force(const ChunkLayout& layout, int64_t item_bytes, const ChunkPart& part) {
  const std::vector<int64_t> strides = layout.strides();
  std::set<size_t> bytes;
  for (int64_t i = 0; i < part.num_items(); ++i) {
    int64_t rest = i, item = 0;
    for (size_t axis = part.extent.size(); axis-- > 0;) {
      item += (part.in_chunk[axis] + rest % part.extent[axis]) * strides[axis];
      rest /= part.extent[axis];
    }
    for (int64_t b = 0; b < item_bytes; ++b)
      bytes.insert(static_cast<size_t>(item * item_bytes + b));
  }
  return bytes;
}

}  // namespace

TEST_CASE("the ranges are exactly the bytes of the part, in any order of axes", "[zarr][needed]") {
  Pcg64 rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    const size_t rank = 1 + rng.next_bounded(4);
    ChunkLayout layout;
    std::vector<int64_t> first, extent;
    for (size_t axis = 0; axis < rank; ++axis) {
      layout.shape.push_back(1 + rng.next_bounded(5));
      first.push_back(rng.next_bounded(static_cast<uint32_t>(layout.shape[axis] - 1)));
      extent.push_back(
          1 + rng.next_bounded(static_cast<uint32_t>(layout.shape[axis] - 1 - first[axis])));
    }
    for (const int64_t axis : rng.permutation(static_cast<int64_t>(rank)))
      layout.axis_order.push_back(static_cast<size_t>(axis));
    const ChunkPart part = part_of(first, extent);
    std::vector<ByteRange> ranges;
    REQUIRE(append_needed_bytes(layout, 4, part, ranges));
    std::set<size_t> bytes;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (i > 0) REQUIRE(ranges[i].begin > ranges[i - 1].end);
      for (size_t b = ranges[i].begin; b < ranges[i].end; ++b)
        bytes.insert(b);
    }
    REQUIRE(bytes == brute_force(layout, 4, part));
  }
}

TEST_CASE("neighbouring variables of all cells are one range", "[zarr][needed]") {
  ChunkLayout layout;
  layout.shape = {1, 10, 1, 100};
  layout.axis_order = {0, 1, 2, 3};
  std::vector<ByteRange> ranges;
  REQUIRE(append_needed_bytes(layout, 4, part_of({0, 3, 0, 0}, {1, 4, 1, 100}), ranges));
  REQUIRE(ranges.size() == 1);
  REQUIRE((ranges[0].begin == 1200 && ranges[0].end == 2800));
}

TEST_CASE("very many small ranges are given up", "[zarr][needed]") {
  ChunkLayout layout;
  layout.shape = {100000, 2};
  layout.axis_order = {0, 1};
  std::vector<ByteRange> ranges;
  REQUIRE_FALSE(append_needed_bytes(layout, 4, part_of({0, 0}, {100000, 1}), ranges));
}
