// SPDX-License-Identifier: Apache-2.0
// What all kernels on rows share: plain pointers into device memory, the type of their elements,
// a stream. Rows are contiguous, one after another. Nothing here knows LibTorch.
//
// A launch that fails throws std::runtime_error with the name of the kernel and CUDA's message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace aifs::model::cuda {

enum class ElementType { kFloat32, kBFloat16, kFloat16 };

// Widest row that a warp takes as a whole. Kernels that need not see a whole row work on slices of
// wider ones.
inline constexpr int64_t kMaxWidth = 2048, kSliceWidth = 1024;
constexpr bool fits_in_slices(int64_t width) {
  return width <= kMaxWidth || width % kSliceWidth == 0;
}
constexpr int64_t slice_width(int64_t width) {
  return width <= kMaxWidth ? width : kSliceWidth;
}

struct RowShape {
  int64_t rows = 0, width = 0;
  ElementType type = ElementType::kFloat32;
};

// Edges in rows sorted by target; null pointers where a kernel does not need them.
struct Ends {
  const int32_t* target = nullptr;  // (rows)
  const int32_t* source = nullptr;  // (rows)
};

// Groups of rows: group i is list[begin[i]] ... list[begin[i + 1] - 1], or those numbers themselves
// where list is null.
struct Groups {
  int64_t count = 0;
  const int32_t* begin = nullptr;  // (count + 1)
  const int32_t* list = nullptr;
};

// Sums over all rows are taken in a fixed number of parts and in a fixed order, the same on every
// card; products (tall_product.h) have fewer, by its multiprocessors. Floats of scratch memory for
// `columns` of them.
inline constexpr int64_t kColumnSumParts = 264;
constexpr int64_t column_sum_scratch(int64_t columns) {
  return kColumnSumParts * columns;
}

}  // namespace aifs::model::cuda
