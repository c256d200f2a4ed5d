// SPDX-License-Identifier: Apache-2.0
#include "data/fields/field_scatter.h"

#include <algorithm>
#include <cstring>

namespace aifs::data {

namespace {

// Cells handled together: their rows of the output stay in the cache until they are complete.
constexpr int64_t kScatterCells = 128;
constexpr int64_t kTile = 4;
constexpr int64_t kLine = 16;  // floats of a cache line

using Tile = float __attribute__((vector_size(kTile * sizeof(float))));

Tile load(const float* from) {
  Tile tile;
  std::memcpy(&tile, from, sizeof tile);
  return tile;
}

// 4 x 4 values of neighbouring fields and cells, turned over in registers.
void transpose_tile(const float* in, int64_t field_stride, float* out, int64_t row_width) {
  const Tile a = load(in), b = load(in + field_stride);
  const Tile c = load(in + 2 * field_stride), d = load(in + 3 * field_stride);
  const Tile ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Tile ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Tile cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Tile cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Tile rows[kTile] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                            __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int64_t n = 0; n < kTile; ++n)
    std::memcpy(out + n * row_width, &rows[n], sizeof rows[n]);
}

// Turns over kTile fields of `count` cells; gives the number of cells done, a multiple of kTile.
int64_t transpose_fields(const float* in, int64_t field_stride, int64_t count, float* out,
                         int64_t row_width) {
  int64_t n = 0;
  for (; n + kTile <= count; n += kTile) {
    if (n % kLine == 0) {
      // The fields are too many streams for the processor to foresee: ask for the next block.
      for (int64_t f = 0; f < kTile; ++f)
        __builtin_prefetch(in + f * field_stride + n + kScatterCells);
    }
    transpose_tile(in + n, field_stride, out + n * row_width, row_width);
  }
  return n;
}

// True if the maps from `first` on lead from neighbouring fields to neighbouring columns.
bool is_tile(std::span<const ColumnMap> columns, size_t first) {
  if (first + kTile > columns.size()) return false;
  for (int64_t k = 1; k < kTile; ++k) {
    const ColumnMap& map = columns[first + static_cast<size_t>(k)];
    if (map.source != columns[first].source + k || map.column != columns[first].column + k) {
      return false;
    }
  }
  return true;
}

}  // namespace

void scatter_fields(const FieldView& fields, std::span<const ColumnMap> columns, float* out,
                    int64_t row_width) {
  for (int64_t first = 0; first < fields.num_cells; first += kScatterCells) {
    const int64_t count = std::min(kScatterCells, fields.num_cells - first);
    for (size_t k = 0; k < columns.size();) {
      const float* in =
          fields.values + columns[k].source * fields.field_stride + first * fields.cell_stride;
      float* to = out + first * row_width + columns[k].column;
      const bool tile = fields.cell_stride == 1 && is_tile(columns, k);
      const int64_t n = tile ? transpose_fields(in, fields.field_stride, count, to, row_width) : 0;
      for (int64_t f = 0; f < (tile ? kTile : 1); ++f) {
        for (int64_t m = n; m < count; ++m)
          to[m * row_width + f] = in[f * fields.field_stride + m * fields.cell_stride];
      }
      k += tile ? kTile : 1;
    }
  }
}

}  // namespace aifs::data
