// SPDX-License-Identifier: Apache-2.0
// A thread fills 16 bytes of a row.
#include "model/kernels/cuda/joined_rows.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kUnit = 8;  // columns of a thread

// Columns of a piece where they are among the eight from `first` on, counted from its own first.
template <class Source, class T>
__device__ void take(Pack<T, kUnit>& unit, const ColumnPiece& piece, int64_t offset, int first) {
  const Source* from = static_cast<const Source*>(piece.data) + offset + first;
#pragma unroll
  for (int i = 0; i < kUnit; ++i) {
    if (first + i >= 0 && first + i < piece.columns)
      unit.values[i] = from_float<T>(to_float(from[i]));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    joined_rows_kernel(const __grid_constant__ JoinedRows j, uint32_t units_of_row) {
  const uint32_t unit = blockIdx.x * kThreads + threadIdx.x, row = unit / units_of_row;
  if (row >= j.rows) return;
  int first = static_cast<int>(unit % units_of_row) * kUnit;
  const int64_t batch = row / j.rows_per_batch, own = row % j.rows_per_batch;
  Pack<T, kUnit> out;
#pragma unroll
  for (int i = 0; i < kUnit; ++i)
    out.values[i] = from_float<T>(0.0f);
  for (int p = 0; p < j.num_pieces; ++p) {
    const ColumnPiece& piece = j.pieces[p];
    const int64_t offset = batch * piece.batch_stride + own * piece.row_stride;
    if (first > -kUnit && first < piece.columns) {
      if (piece.is_fp32) {
        take<float>(out, piece, offset, first);
      } else {
        take<T>(out, piece, offset, first);
      }
    }
    first -= piece.columns;
  }
  static_cast<Pack<T, kUnit>*>(j.out)[unit] = out;
}

}  // namespace

void join_rows(const JoinedRows& j, cudaStream_t stream) {
  if (j.rows == 0 || j.width == 0) return;
  const int64_t units = j.width / kUnit;
  const auto blocks = static_cast<unsigned>((j.rows * units + kThreads - 1) / kThreads);
  dispatch_type(j.type, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      joined_rows_kernel<T><<<blocks, kThreads, 0, stream>>>(j, static_cast<uint32_t>(units));
  });
  check_launch("joined_rows");
}

}  // namespace aifs::model::cuda
