// SPDX-License-Identifier: Apache-2.0
// Rows that are the sum of pieces which overlap.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace aifs::model {

// Pieces that look alike, (B * count, n, ...): the i-th of each batch covers rows `begin` +
// i * `step` to `begin` + i * `step` + n of the result.
struct OverlappingPieces {
  at::Tensor values;
  int64_t begin = 0, step = 1, count = 1;
};

// Returns (B, `rows`, ...) with the sum of all pieces, zero where there is none. On a GPU 16-bit
// rows are summed in fp32 and rounded once; the order is fixed everywhere.
at::Tensor overlap_sum(const std::vector<OverlappingPieces>& groups, int64_t rows);

}  // namespace aifs::model
