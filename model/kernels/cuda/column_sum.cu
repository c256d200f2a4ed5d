// SPDX-License-Identifier: Apache-2.0
// The second half of a sum over all rows: the parts that blocks wrote, in order.
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kColumns = 32, kLanes = 8;

// A block sums 32 columns; each of 8 rows of threads takes every eighth part.
__global__ void column_sum_kernel(const float* __restrict__ scratch, ColumnSums sums_of,
                                  int64_t width, int64_t columns, int64_t parts) {
  __shared__ float sums[kLanes][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 4
    for (int64_t part = threadIdx.y; part < parts; part += kLanes)
      sum += scratch[part * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0.0f;
  for (int lane = 0; lane < kLanes; ++lane)
    total += sums[lane][threadIdx.x];
  sums_of.outs[column / width][column % width] += total;
}

}  // namespace

void add_column_sums(const float* scratch, const ColumnSums& sums, int64_t width,
                     cudaStream_t stream, int64_t parts) {
  int64_t columns = 0;
  for (const float* out : sums.outs)
    columns += out != nullptr ? width : 0;
  const auto blocks = static_cast<unsigned>((columns + kColumns - 1) / kColumns);
  column_sum_kernel<<<blocks, dim3(kColumns, kLanes), 0, stream>>>(scratch, sums, width, columns,
                                                                   parts);
  check_launch("column_sum");
}

}  // namespace aifs::model::cuda
