// SPDX-License-Identifier: Apache-2.0
// What an absent chunk holds.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "data/zarr/dtype.h"
#include "data/zarr/json_text.h"

namespace aifs::zarr {

struct FillValue {
  double real = 0.0;    // as a floating-point number
  int64_t integer = 0;  // as an integer; 0 for floats
  bool defined = true;  // false: JSON null, an absent chunk then holds nobody knows what

  template <class T>
  T as(const DataType& type) const {
    const bool is_real = type.kind == Kind::kFloat || std::is_floating_point_v<T>;
    return is_real ? static_cast<T>(real) : static_cast<T>(integer);
  }
  // "NaN", "0", "not a time".
  std::string text(const DataType& type) const;
};

// A number, a boolean, null, or one of the texts "NaN", "Infinity", "-Infinity", "NaT" and (bits of
// a float, format 3) "0x7fc00000". Throws DataError without a file name, also for numbers that the
// type cannot hold.
FillValue parse_fill_value(const Json& value, const DataType& type);

}  // namespace aifs::zarr
