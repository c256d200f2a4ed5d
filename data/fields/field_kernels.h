// SPDX-License-Identifier: Apache-2.0
// The inner loops of reading: stored bytes to normalised values in one pass, and fields (one
// variable after the other) to cells (one cell after the other). Vectorised for what the processor
// has (AVX-512, AVX2, or portable C++); every version gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace aifs::data {

// x * mul + add, each rounded, as the normaliser of the reference does.
struct AffineMap {
  float mul = 1.0f, add = 0.0f;
};

// `count` float32 values (little endian) whose bytes lie in four planes, `plane_bytes` apart:
// byte b of value i is planes[b * plane_bytes + i]. Writes the mapped values to `out`, past the
// caches if it `streams`. Returns false if any value is NaN; `out` is then complete all the same.
bool map_planes(const std::byte* planes, size_t plane_bytes, int64_t count, AffineMap map,
                bool streams, float* out);
// Maps floats that are `stride` apart.
bool map_floats(const float* values, int64_t stride, int64_t count, AffineMap map, float* out);
// Puts the bytes of planes together, unmapped.
void join_planes(const std::byte* planes, size_t plane_bytes, int64_t count, float* out);

// out[c * row_width + f] = fields[f * field_stride + c] for c < num_cells, f < num_fields.
void fields_to_cells(const float* fields, int64_t field_stride, int64_t num_fields,
                     int64_t num_cells, float* out, int64_t row_width);

// "AVX-512", "AVX2" or "portable": what the functions above use here.
std::string field_kernels_name();

}  // namespace aifs::data
