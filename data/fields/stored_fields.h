// SPDX-License-Identifier: Apache-2.0
// Describes decoded chunks of which bytes are still shuffled, and computes normalised values from
// them. Plain data and inline functions that host and GPU code share; both give the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "data/fields/lz4_decode.h"

namespace aifs::data {

enum class StoredType : int32_t { kFloat16, kFloat32, kFloat64 };  // little endian

// A stored variable of a chunk and the column that it becomes.
struct StoredColumn {
  int64_t first_item = 0;  // of member 0, at the first cell of the part
  int32_t column = 0;
  int32_t is_filled = 0;  // NaN becomes `fill`
  float fill = 0.0f;
  float mul = 1.0f, add = 0.0f;  // x * mul + add, each rounded
};

// Describes what a decoded chunk has of a row (date): some variables and members at neighbouring
// cells.
struct StoredPart {
  const uint8_t* decoded = nullptr;  // the bytes of the chunk, block after block
  uint32_t num_items = 0;            // of the chunk
  uint32_t block_items = 0;          // of each block; the last one may have fewer
  bool is_shuffled = false;          // each block: first bytes of all items, second bytes, ...
  StoredType type = StoredType::kFloat32;

  const StoredColumn* columns = nullptr;  // (num_columns), ascending by column
  int64_t member_items = 0;               // items between members
  int64_t num_cells = 0;
  int32_t num_columns = 0, num_members = 1;

  // Output, from the first cell of the part on: cells[(e * row_cells + n) * width + column].
  float* cells = nullptr;
  int64_t row_cells = 0;
  int32_t width = 0;            // V
  uint8_t* nan_mask = nullptr;  // [n * width + column] becomes 1 where NaN was filled; or null
  // Becomes the least n * width + column where NaN has no fill; starts as UINT64_MAX.
  unsigned long long* first_nan = nullptr;
};

AIFS_HOST_DEVICE inline float float_from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  if (exponent == 0) {  // zero or subnormal: a whole number of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -size : size;
  }
  const uint32_t float_exponent = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | float_exponent << 23 | fraction << 13);
}

template <class Bits>
AIFS_HOST_DEVICE float float_from_bits(Bits bits) {
  if constexpr (sizeof(Bits) == 2) return float_from_half(bits);
  if constexpr (sizeof(Bits) == 4) return std::bit_cast<float>(bits);
  if constexpr (sizeof(Bits) == 8) return static_cast<float>(std::bit_cast<double>(bits));
}

// Returns an item as float32; `Bits` is an unsigned integer of its width.
template <class Bits>
AIFS_HOST_DEVICE float stored_value(const StoredPart& part, uint32_t item) {
  const uint32_t block_begin = item / part.block_items * part.block_items;
  const uint32_t left = part.num_items - block_begin, in_block = item - block_begin;
  const uint32_t items = left < part.block_items ? left : part.block_items;
  const uint8_t* block = part.decoded + static_cast<uint64_t>(block_begin) * sizeof(Bits);
  Bits bits = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (uint32_t b = 0; b < sizeof(Bits); ++b) {
    const uint64_t at = part.is_shuffled ? static_cast<uint64_t>(b) * items + in_block
                                         : static_cast<uint64_t>(in_block) * sizeof(Bits) + b;
    bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<Bits>(block[at]) << (8 * b)));
  }
  return float_from_bits(bits);
}

// Returns x * mul + add with two roundings, as the reading on the CPU.
AIFS_HOST_DEVICE inline float normalised(float x, const StoredColumn& column) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(x, column.mul), column.add);
#else
  const float product = x * column.mul;
  return product + column.add;
#endif
}

}  // namespace aifs::data
