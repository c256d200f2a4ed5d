// SPDX-License-Identifier: Apache-2.0
// A thread sums 16 bytes of a row.
#include "model/kernels/cuda/overlap_sum.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kUnit = 8;  // columns of a thread

template <class T>
__global__ void __launch_bounds__(kThreads)
    overlap_sum_kernel(const __grid_constant__ OverlapSum sum, int64_t units) {
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (unit >= units) return;
  const int64_t units_of_row = sum.width / kUnit, row_of_all = unit / units_of_row;
  const int64_t column = unit % units_of_row;
  const int64_t batch = row_of_all / sum.rows, row = row_of_all % sum.rows;
  float values[kUnit] = {};
  for (int g = 0; g < sum.num_groups; ++g) {
    const OverlapPieces& pieces = sum.groups[g];
    const int64_t from_begin = row - pieces.begin;
    if (from_begin < 0) continue;
    // The pieces that hold the row.
    const int64_t past = from_begin - pieces.rows;
    const int64_t first = past < 0 ? 0 : past / pieces.step + 1;
    const int64_t last = min(from_begin / pieces.step, pieces.count - 1);
    for (int64_t i = first; i <= last; ++i) {
      const int64_t place = (batch * pieces.count + i) * pieces.rows + from_begin - i * pieces.step;
      const auto piece =
          static_cast<const Pack<T, kUnit>*>(pieces.data)[place * units_of_row + column];
#pragma unroll
      for (int k = 0; k < kUnit; ++k)
        values[k] += to_float(piece.values[k]);
    }
  }
  Pack<T, kUnit> out;
#pragma unroll
  for (int k = 0; k < kUnit; ++k)
    out.values[k] = from_float<T>(values[k]);
  static_cast<Pack<T, kUnit>*>(sum.out)[unit] = out;
}

}  // namespace

void overlap_sum(const OverlapSum& sum, cudaStream_t stream) {
  const int64_t units = sum.batches * sum.rows * (sum.width / kUnit);
  if (units == 0) return;
  const auto blocks = static_cast<unsigned>((units + kThreads - 1) / kThreads);
  dispatch_type(sum.type, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      overlap_sum_kernel<T><<<blocks, kThreads, 0, stream>>>(sum, units);
  });
  check_launch("overlap_sum");
}

}  // namespace aifs::model::cuda
