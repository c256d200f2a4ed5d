// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/raw_items.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace aifs::zarr {

namespace {

// Copies or fills a block of items axis by axis. Strides count items.
struct BlockCopy {
  const std::vector<int64_t>& extent;
  const std::vector<int64_t>& from_strides;
  const std::vector<int64_t>& to_strides;
  int64_t item_bytes;
  bool swap;                        // the bytes of each item
  std::span<const std::byte> fill;  // one item, where there is nothing to copy from

  void run(size_t axis, const std::byte* from, std::byte* to) const {
    const bool is_last = axis + 1 >= extent.size();
    const int64_t count = extent.empty() ? 1 : extent[axis];
    const int64_t from_step = extent.empty() ? 1 : from_strides[axis];
    const int64_t to_step = extent.empty() ? 1 : to_strides[axis];
    if (is_last && from && !swap && from_step == 1 && to_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count * item_bytes));
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const std::byte* source = from ? from + i * from_step * item_bytes : nullptr;
      std::byte* target = to + i * to_step * item_bytes;
      if (!is_last) {
        run(axis + 1, source, target);
        continue;
      }
      std::memcpy(target, source ? source : fill.data(), static_cast<size_t>(item_bytes));
      if (source && swap) std::reverse(target, target + item_bytes);
    }
  }
};

std::vector<int64_t> c_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

int64_t offset(const std::vector<int64_t>& first, const std::vector<int64_t>& strides) {
  int64_t items = 0;
  for (size_t axis = 0; axis < first.size(); ++axis)
    items += first[axis] * strides[axis];
  return items;
}

// binary16 of a number that has one; fill values do.
uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  const double size = std::abs(value);
  if (size < 0x1p-14) return static_cast<uint16_t>(sign | std::lround(size * 0x1p24));
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
  const auto mantissa = static_cast<int>(std::lround(fraction * 2048)) - 1024;
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + mantissa));
}

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

std::vector<std::byte> fill_item(const DataType& type, const FillValue& fill) {
  if (type.kind == Kind::kFloat) {
    const double value = fill.defined ? fill.real : 0.0;
    if (type.item_bytes == 2) return bytes_of(half_bits(value));
    if (type.item_bytes == 4) return bytes_of(static_cast<float>(value));
    return bytes_of(value);
  }
  std::vector<std::byte> item = bytes_of(fill.defined ? fill.integer : int64_t{0});
  item.resize(static_cast<size_t>(type.item_bytes));
  return item;
}

void copy_block(const std::byte* from, const BlockPlace& from_place, std::byte* to,
                const BlockPlace& to_place, const std::vector<int64_t>& extent,
                int64_t item_bytes) {
  const std::vector<int64_t> from_strides = c_strides(from_place.shape);
  const std::vector<int64_t> to_strides = c_strides(to_place.shape);
  const BlockCopy copy{extent, from_strides, to_strides, item_bytes, false, {}};
  copy.run(0, from + offset(from_place.first, from_strides) * item_bytes,
           to + offset(to_place.first, to_strides) * item_bytes);
}

void read_raw(const Array& array, const Region& region, std::span<std::byte> out,
              std::vector<Region>& absent, ChunkScratch& scratch) {
  const ArrayMeta& meta = array.meta();
  const int64_t item_bytes = meta.type.item_bytes;
  AIFS_CHECK(static_cast<int64_t>(out.size()) == region.num_items() * item_bytes);
  std::vector<int64_t> shape = region.end;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    shape[axis] -= region.begin[axis];
  const std::vector<int64_t> in_strides = meta.chunk.strides(), out_strides = c_strides(shape);
  const std::vector<std::byte> fill = fill_item(meta.type, meta.fill);
  array.grid().for_each_part(region, [&](const ChunkPart& part) {
    const ChunkView view = array.decode_chunk(part.chunk, {}, scratch);
    const BlockCopy copy{part.extent, in_strides,           out_strides,
                         item_bytes,  meta.type.big_endian, fill};
    copy.run(0, view.items ? view.items + offset(part.in_chunk, in_strides) * item_bytes : nullptr,
             out.data() + offset(part.in_region, out_strides) * item_bytes);
    if (view.items) return;
    Region place{region.begin, region.begin};
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      place.begin[axis] += part.in_region[axis];
      place.end[axis] = place.begin[axis] + part.extent[axis];
    }
    absent.push_back(std::move(place));
  });
}

bool covers(const std::vector<Region>& regions, const Region& region) {
  int64_t covered = 0;
  for (const Region& other : regions) {
    int64_t items = 1;
    for (size_t axis = 0; axis < region.begin.size(); ++axis) {
      items *= std::max<int64_t>(0, std::min(region.end[axis], other.end[axis]) -
                                        std::max(region.begin[axis], other.begin[axis]));
    }
    covered += items;
  }
  return covered == region.num_items();
}

}  // namespace aifs::zarr
