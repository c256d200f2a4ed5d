// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/check.h"

namespace aifs::zarr {

namespace {

uint8_t swap_bytes(uint8_t x) {
  return x;
}
uint16_t swap_bytes(uint16_t x) {
  return __builtin_bswap16(x);
}
uint32_t swap_bytes(uint32_t x) {
  return __builtin_bswap32(x);
}
uint64_t swap_bytes(uint64_t x) {
  return __builtin_bswap64(x);
}

// How the bits of an item are read.
template <class Item>
auto value_of(Item item) {
  return item;
}

struct Half {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};
float value_of(Half item) {
  return half_to_float(item.bits);
}
uint8_t value_of(Bool item) {
  return item.bits != 0;
}

template <size_t bytes>
using Bits = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <class Item, bool swap, class T>
void convert_as(const std::byte* items, int64_t stride, int64_t count, T* out) {
  using Raw = Bits<sizeof(Item)>;
  for (int64_t i = 0; i < count; ++i) {
    Raw bits;
    std::memcpy(&bits, items + i * stride * static_cast<int64_t>(sizeof(Item)), sizeof bits);
    if constexpr (swap) bits = swap_bytes(bits);
    out[i] = static_cast<T>(value_of(std::bit_cast<Item>(bits)));
  }
}

template <class Item, class T>
void convert_either(const DataType& type, const std::byte* items, int64_t stride, int64_t count,
                    T* out) {
  if (type.big_endian) {
    convert_as<Item, true>(items, stride, count, out);
  } else {
    convert_as<Item, false>(items, stride, count, out);
  }
}

template <class T>
void convert_floats(const DataType& type, const std::byte* items, int64_t stride, int64_t count,
                    T* out) {
  if constexpr (std::is_integral_v<T>) {
    throw DataError(concat("dtype is ", type.name(), ", integers are needed"));
  } else {
    switch (type.item_bytes) {
      case 2:
        return convert_either<Half>(type, items, stride, count, out);
      case 4:
        return convert_either<float>(type, items, stride, count, out);
      default:
        return convert_either<double>(type, items, stride, count, out);
    }
  }
}

template <class I8, class I16, class I32, class I64, class T>
void convert_integers(const DataType& type, const std::byte* items, int64_t stride, int64_t count,
                      T* out) {
  switch (type.item_bytes) {
    case 1:
      return convert_either<I8>(type, items, stride, count, out);
    case 2:
      return convert_either<I16>(type, items, stride, count, out);
    case 4:
      return convert_either<I32>(type, items, stride, count, out);
    default:
      return convert_either<I64>(type, items, stride, count, out);
  }
}

}  // namespace

float half_to_float(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float size;
  if (exponent == 31) {
    size = fraction == 0 ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    size = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
void convert_items(const DataType& type, const std::byte* items, int64_t stride, int64_t count,
                   T* out) {
  switch (type.kind) {
    case Kind::kBool:
      return convert_either<Bool>(type, items, stride, count, out);
    case Kind::kFloat:
      return convert_floats(type, items, stride, count, out);
    case Kind::kUnsigned:
      return convert_integers<uint8_t, uint16_t, uint32_t, uint64_t>(type, items, stride, count,
                                                                     out);
    case Kind::kInteger:
    case Kind::kDate:
    case Kind::kDuration:
      return convert_integers<int8_t, int16_t, int32_t, int64_t>(type, items, stride, count, out);
  }
}

template void convert_items(const DataType&, const std::byte*, int64_t, int64_t, float*);
template void convert_items(const DataType&, const std::byte*, int64_t, int64_t, double*);
template void convert_items(const DataType&, const std::byte*, int64_t, int64_t, int64_t*);

}  // namespace aifs::zarr
