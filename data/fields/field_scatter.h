// SPDX-License-Identifier: Apache-2.0
// From fields one after the other (variable, cell), as chunks hold them, to cells one after the
// other (cell, variable), as networks want them. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace aifs::data {

// Field number `source` goes to column `column`.
struct ColumnMap {
  int64_t source = 0;
  int64_t column = 0;
};

// Says where the value of field s at cell n lies: values[s * field_stride + n * cell_stride].
struct FieldView {
  const float* values = nullptr;
  int64_t field_stride = 0;
  int64_t cell_stride = 1;
  int64_t num_cells = 0;
};

// out[n * row_width + column] = field `source` at cell n, for all of `columns`.
void scatter_fields(const FieldView& fields, std::span<const ColumnMap> columns, float* out,
                    int64_t row_width);

}  // namespace aifs::data
