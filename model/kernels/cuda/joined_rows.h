// SPDX-License-Identifier: Apache-2.0
// Columns of several tensors side by side in rows of 16-bit numbers, in one pass.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

inline constexpr int kMaxPieces = 8;

// (batch, row, column), columns one after another, in fp32 or the type of the result.
struct ColumnPiece {
  const void* data = nullptr;
  int64_t batch_stride = 0, row_stride = 0;
  int columns = 0;
  bool is_fp32 = false;
};

struct JoinedRows {
  int64_t rows = 0;  // all batches; times width less than 2^32
  uint32_t rows_per_batch = 1;
  int width = 0;  // a multiple of eight, at least the columns of all pieces; zeros behind them
  ElementType type = ElementType::kBFloat16;  // of 16 bits
  int num_pieces = 0;
  ColumnPiece pieces[kMaxPieces];
  void* out = nullptr;  // (rows, width), aligned to 16 bytes
};
void join_rows(const JoinedRows& j, cudaStream_t stream);

}  // namespace aifs::model::cuda
