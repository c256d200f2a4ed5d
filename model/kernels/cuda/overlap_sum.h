// SPDX-License-Identifier: Apache-2.0
// Rows that are the sum of pieces which overlap, as gradients of keys are that several parts of a
// sequence see. Each row is summed in fp32, pieces in a fixed order, and written once.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

inline constexpr int kMostOverlaps = 3;

// Pieces that look alike: `count` for each batch, each of `rows` rows, the i-th from row
// `begin` + i * `step` of the result on. Data are (batch, count, rows, width).
struct OverlapPieces {
  const void* data = nullptr;
  int64_t begin = 0, rows = 0, step = 1, count = 1;
};

struct OverlapSum {
  int64_t batches = 1, rows = 0;
  int width = 0;                              // a multiple of eight
  ElementType type = ElementType::kBFloat16;  // of 16 bits
  int num_groups = 0;
  OverlapPieces groups[kMostOverlaps];
  void* out = nullptr;  // (batches, rows, width), aligned to 16 bytes like all data
};
// Rows that no piece covers become zero.
void overlap_sum(const OverlapSum& sum, cudaStream_t stream);

}  // namespace aifs::model::cuda
