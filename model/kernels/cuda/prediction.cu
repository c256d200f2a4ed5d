// SPDX-License-Identifier: Apache-2.0
// A warp takes the elements of four rows at a time, in turn over the lanes: rows are too short to
// keep enough loads under way one by one.
#include "model/kernels/cuda/prediction.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kRows = 4;  // of a warp

__device__ inline const float* guess_row(const Prediction& p, uint32_t row) {
  const uint32_t node = row % p.nodes, set = row / p.nodes;
  return p.guess + set / p.members * p.batch_stride + set % p.members * p.member_stride +
         node * p.node_stride;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    predict_kernel(const __grid_constant__ Prediction p, const T* __restrict__ rows,
                   float* __restrict__ fields) {
  const int64_t first = global_warp() * kRows;
  for (int v = static_cast<int>(threadIdx.x) % kWarpSize; v < p.variables; v += kWarpSize) {
    const int column = p.guess != nullptr ? p.guess_column[v] : -1;
    float x[kRows], guess[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = first + i;
      const bool there = row < p.rows;
      x[i] = there ? to_float(rows[row * p.row_width + v]) : 0.0f;
      guess[i] = there && column >= 0 ? guess_row(p, static_cast<uint32_t>(row))[column] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = first + i;
      if (row < p.rows) fields[row * p.variables + v] = x[i] + guess[i];
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    predict_backward_kernel(const __grid_constant__ Prediction p, const float* __restrict__ fields,
                            T* __restrict__ rows) {
  const int64_t first = global_warp() * kRows;
  for (int v = static_cast<int>(threadIdx.x) % kWarpSize; v < p.row_width; v += kWarpSize) {
    float d[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = first + i;
      d[i] = row < p.rows && v < p.variables ? fields[row * p.variables + v] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = first + i;
      if (row < p.rows) rows[row * p.row_width + v] = from_float<T>(d[i]);
    }
  }
}

}  // namespace

void predict(const Prediction& p, const void* rows, float* fields, cudaStream_t stream) {
  if (p.rows == 0) return;
  dispatch_type(p.type, [&]<class T>(T) {
    predict_kernel<T><<<blocks_for((p.rows + kRows - 1) / kRows), kThreads, 0, stream>>>(
        p, static_cast<const T*>(rows), fields);
  });
  check_launch("predict");
}

void predict_backward(const Prediction& p, const float* d_fields, void* d_rows,
                      cudaStream_t stream) {
  if (p.rows == 0) return;
  dispatch_type(p.type, [&]<class T>(T) {
    predict_backward_kernel<T><<<blocks_for((p.rows + kRows - 1) / kRows), kThreads, 0, stream>>>(
        p, d_fields, static_cast<T*>(d_rows));
  });
  check_launch("predict_backward");
}

}  // namespace aifs::model::cuda
