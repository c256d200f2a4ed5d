// SPDX-License-Identifier: Apache-2.0
// What an absent chunk holds.
#pragma once

#include <cstdint>

#include "data/zarr/dtype.h"
#include "data/zarr/json_text.h"

namespace aifs::zarr {

struct FillValue {
  double real = 0.0;    // as a floating-point number
  int64_t integer = 0;  // as an integer; 0 for floats
  bool defined = true;  // false: JSON null, read as zeros

  // True if nobody would store this on purpose: NaN, not-a-time or undefined. An absent chunk then
  // means "no data", where with any other value it may stand for a chunk that held nothing else.
  bool means_nothing(const DataType& type) const;

  template <class T>
  T as(const DataType& type) const {
    return type.kind == Kind::kFloat ? static_cast<T>(real) : static_cast<T>(integer);
  }
};

// A number, a boolean, null, or one of the texts "NaN", "Infinity", "-Infinity", "NaT" and (bits of
// a float, format 3) "0x7fc00000". Throws DataError without a file name.
FillValue parse_fill_value(const Json& value, const DataType& type);

}  // namespace aifs::zarr
