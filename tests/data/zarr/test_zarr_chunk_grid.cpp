// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/chunk_grid.h"

#include <map>

#include "core/check.h"
#include "core/rng.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::zarr;

namespace {

using Index = std::vector<int64_t>;

// Every item of a box, the last axis fastest.
template <class Visit>
void for_each_item(const Index& extent, Visit&& visit) {
  for (const int64_t length : extent) {
    if (length == 0) return;
  }
  Index index(extent.size(), 0);
  for (;;) {
    visit(index);
    size_t axis = extent.size();
    while (axis > 0 && ++index[axis - 1] == extent[axis - 1])
      index[--axis] = 0;
    if (axis == 0) return;
  }
}

// Returns what is where, according to the parts: item of the region -> item of the array.
std::map<Index, Index> placed(const ChunkGrid& grid, const Region& region) {
  std::map<Index, Index> items;
  grid.for_each_part(region, [&](const ChunkPart& part) {
    for_each_item(part.extent, [&](const Index& offset) {
      Index in_region, in_array;
      for (size_t axis = 0; axis < offset.size(); ++axis) {
        REQUIRE(part.in_chunk[axis] + offset[axis] < grid.chunk_shape()[axis]);
        in_region.push_back(part.in_region[axis] + offset[axis]);
        in_array.push_back(part.chunk[axis] * grid.chunk_shape()[axis] + part.in_chunk[axis] +
                           offset[axis]);
      }
      REQUIRE(items.emplace(in_region, in_array).second);  // nothing twice
    });
  });
  return items;
}

}  // namespace

TEST_CASE("the parts of a region are the region, each item once", "[zarr][grid]") {
  Pcg64 rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t rank = 1 + rng.next_bounded(3);
    Index shape, chunks, extent;
    Region region;
    for (size_t axis = 0; axis < rank; ++axis) {
      shape.push_back(1 + rng.next_bounded(8));
      chunks.push_back(1 + rng.next_bounded(9));
      region.begin.push_back(rng.next_bounded(static_cast<uint32_t>(shape[axis])));
      region.end.push_back(region.begin[axis] + rng.next_bounded(static_cast<uint32_t>(
                                                    shape[axis] - region.begin[axis])));
      extent.push_back(region.end[axis] - region.begin[axis]);
    }
    const auto items = placed(ChunkGrid(shape, chunks), region);
    REQUIRE(static_cast<int64_t>(items.size()) == region.num_items());
    for_each_item(extent, [&](const Index& at) {
      Index expected = at;
      for (size_t axis = 0; axis < rank; ++axis)
        expected[axis] += region.begin[axis];
      REQUIRE(items.at(at) == expected);
    });
  }
}

TEST_CASE("chunks are visited once and in C order", "[zarr][grid]") {
  const ChunkGrid grid({5, 7}, {2, 3});
  std::vector<Index> chunks;
  grid.for_each_part(Region::whole({5, 7}),
                     [&](const auto& part) { chunks.push_back(part.chunk); });
  REQUIRE(chunks == std::vector<Index>{
                        {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}});
}

TEST_CASE("an array without axes is one part, an empty region none", "[zarr][grid]") {
  int64_t parts = 0;
  ChunkGrid({}, {}).for_each_part({}, [&](const ChunkPart& part) {
    ++parts;
    REQUIRE(part.num_items() == 1);
  });
  REQUIRE(parts == 1);
  ChunkGrid({4, 4}, {2, 2}).for_each_part({{1, 3}, {4, 3}}, [&](const auto&) { ++parts; });
  REQUIRE(parts == 1);
}

TEST_CASE("huge chunks do not overflow", "[zarr][grid]") {
  const int64_t huge = int64_t{1} << 60;
  ChunkGrid({10}, {huge}).for_each_part({{2}, {7}}, [&](const ChunkPart& part) {
    REQUIRE(part.chunk == Index{0});
    REQUIRE(part.extent == Index{5});
  });
}

TEST_CASE("a region outside the array is refused", "[zarr][grid]") {
  const ChunkGrid grid({4, 4}, {2, 2});
  const auto ignore = [](const ChunkPart&) {};
  REQUIRE_THROWS_AS(grid.for_each_part({{0, 0}, {4, 5}}, ignore), Error);
  REQUIRE_THROWS_AS(grid.for_each_part({{-1, 0}, {4, 4}}, ignore), Error);
  REQUIRE_THROWS_AS(grid.for_each_part({{3, 0}, {2, 4}}, ignore), Error);
  REQUIRE_THROWS_AS(grid.for_each_part({{0}, {4}}, ignore), Error);
  REQUIRE_THROWS_AS(ChunkGrid({4}, {0}), Error);
}
