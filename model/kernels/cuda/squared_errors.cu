// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/squared_errors.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kRows = 4;  // of a warp: one alone would wait for too few loads

// The factors of a row, at its time and node.
struct RowFactors {
  const float* values[kMaxErrorFactors];

  __device__ void find(const SquaredErrors& s, uint32_t row) {
    const uint32_t node = row % s.nodes, time = row / s.nodes / s.members % s.times;
#pragma unroll
    for (int f = 0; f < kMaxErrorFactors; ++f) {
      values[f] =
          s.factors[f].values + time * s.factors[f].time_stride + node * s.factors[f].node_stride;
    }
  }
  // x times all of them, in their order.
  __device__ float times(const SquaredErrors& s, float x, int variable) const {
#pragma unroll
    for (int f = 0; f < kMaxErrorFactors; ++f) {
      if (f < s.num_factors) x *= values[f][variable * s.factors[f].variable_stride];
    }
    return x;
  }
};

// The rows of a warp, of which a lane takes every 32nd variable.
struct WarpRows {
  const SquaredErrors& s;
  int64_t first = global_warp() * kRows;
  RowFactors factors[kRows];

  __device__ explicit WarpRows(const SquaredErrors& s_) : s(s_) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      factors[i].find(s, static_cast<uint32_t>(first + i < s.rows ? first + i : 0));
  }
  // f(row, variable, difference) for all there are, after they have been asked for in all rows.
  template <class F>
  __device__ void for_differences(F f) const {
    for (int v = static_cast<int>(threadIdx.x) % kWarpSize; v < s.variables; v += kWarpSize) {
      float x[kRows], y[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int64_t at = (first + i) * s.variables + v;
        const bool there = first + i < s.rows;
        x[i] = there ? s.prediction[at] : 0.0f;
        y[i] = there ? s.target[at] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (first + i < s.rows) f(i, v, x[i] - y[i]);
      }
    }
  }
};

__global__ void __launch_bounds__(kThreads)
    squared_errors_kernel(const __grid_constant__ SquaredErrors s, float* __restrict__ sums) {
  const WarpRows rows(s);
  float sum[kRows] = {};
  rows.for_differences(
      [&](int i, int v, float d) { sum[i] += rows.factors[i].times(s, d * d, v); });
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
      sum[i] += __shfl_xor_sync(~0u, sum[i], offset);
    if (threadIdx.x % kWarpSize == 0 && rows.first + i < s.rows)
      sums[rows.first + i] = s.scale * sum[i];
  }
}

__global__ void __launch_bounds__(kThreads)
    squared_errors_backward_kernel(const __grid_constant__ SquaredErrors s,
                                   const float* __restrict__ d_sums,
                                   float* __restrict__ d_prediction) {
  const WarpRows rows(s);
  float d_sum[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i)
    d_sum[i] = rows.first + i < s.rows ? 2.0f * s.scale * d_sums[rows.first + i] : 0.0f;
  rows.for_differences([&](int i, int v, float d) {
    d_prediction[(rows.first + i) * s.variables + v] = rows.factors[i].times(s, d_sum[i] * d, v);
  });
}

// A warp for so many rows.
unsigned blocks_of(const SquaredErrors& s) {
  return blocks_for((s.rows + kRows - 1) / kRows);
}

}  // namespace

void squared_errors(const SquaredErrors& s, float* sums, cudaStream_t stream) {
  if (s.rows == 0) return;
  squared_errors_kernel<<<blocks_of(s), kThreads, 0, stream>>>(s, sums);
  check_launch("squared_errors");
}

void squared_errors_backward(const SquaredErrors& s, const float* d_sums, float* d_prediction,
                             cudaStream_t stream) {
  if (s.rows == 0) return;
  squared_errors_backward_kernel<<<blocks_of(s), kThreads, 0, stream>>>(s, d_sums, d_prediction);
  check_launch("squared_errors_backward");
}

}  // namespace aifs::model::cuda
