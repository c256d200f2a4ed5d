// SPDX-License-Identifier: Apache-2.0
// From stored items to numbers of this machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/zarr/dtype.h"

namespace aifs::zarr {

// out[i] = item i * stride of `items`, for i = 0 ... count - 1; `stride` counts items and may be 0.
// T is float, double or int64_t. Floats are rounded to nearest, booleans are 0 and 1, dates and
// durations stay counts of their unit. Throws DataError if T is int64_t and the items are floats.
template <class T>
void convert_items(const DataType& type, const std::byte* items, int64_t stride, int64_t count,
                   T* out);

// IEEE 754 binary16, given as its bits.
float half_to_float(uint16_t bits);

}  // namespace aifs::zarr
