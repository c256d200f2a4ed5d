// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/squared_errors.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

// The factors of a row, at its time and node.
struct RowFactors {
  const SquaredErrors& s;
  const float* values[kMaxErrorFactors];

  __device__ RowFactors(const SquaredErrors& s_, uint32_t row) : s(s_) {
    const uint32_t node = row % s.nodes, time = row / s.nodes / s.members % s.times;
#pragma unroll
    for (int f = 0; f < kMaxErrorFactors; ++f) {
      values[f] =
          s.factors[f].values + time * s.factors[f].time_stride + node * s.factors[f].node_stride;
    }
  }
  // x times all of them, in their order.
  __device__ float times(float x, int variable) const {
#pragma unroll
    for (int f = 0; f < kMaxErrorFactors; ++f) {
      if (f < s.num_factors) x *= values[f][variable * s.factors[f].variable_stride];
    }
    return x;
  }
};

// f(variable, difference) for the variables of a row that are a lane's, in their order; four are
// read at a time.
template <class F>
__device__ void for_differences(const SquaredErrors& s, int64_t row, F f) {
  constexpr int kAtOnce = 4;
  const float* __restrict__ prediction = s.prediction + row * s.variables;
  const float* __restrict__ target = s.target + row * s.variables;
  for (int v = static_cast<int>(threadIdx.x) % kWarpSize; v < s.variables;
       v += kAtOnce * kWarpSize) {
    float x[kAtOnce], y[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = v + i * kWarpSize;
      x[i] = at < s.variables ? prediction[at] : 0.0f;
      y[i] = at < s.variables ? target[at] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (v + i * kWarpSize < s.variables) f(v + i * kWarpSize, x[i] - y[i]);
    }
  }
}

// One warp a row, variables in turn over its lanes.
__global__ void __launch_bounds__(kThreads)
    squared_errors_kernel(const __grid_constant__ SquaredErrors s, float* __restrict__ sums) {
  const int64_t row = global_warp();
  if (row >= s.rows) return;
  const RowFactors factors(s, static_cast<uint32_t>(row));
  float sum = 0.0f;
  for_differences(s, row, [&](int v, float d) { sum += factors.times(d * d, v); });
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % kWarpSize == 0) sums[row] = s.scale * sum;
}

__global__ void __launch_bounds__(kThreads)
    squared_errors_backward_kernel(const __grid_constant__ SquaredErrors s,
                                   const float* __restrict__ d_sums,
                                   float* __restrict__ d_prediction) {
  const int64_t row = global_warp();
  if (row >= s.rows) return;
  const RowFactors factors(s, static_cast<uint32_t>(row));
  const float d_sum = 2.0f * s.scale * d_sums[row];
  for_differences(s, row, [&](int v, float d) {
    d_prediction[row * s.variables + v] = factors.times(d_sum * d, v);
  });
}

}  // namespace

void squared_errors(const SquaredErrors& s, float* sums, cudaStream_t stream) {
  if (s.rows == 0) return;
  squared_errors_kernel<<<blocks_for(s.rows), kThreads, 0, stream>>>(s, sums);
  check_launch("squared_errors");
}

void squared_errors_backward(const SquaredErrors& s, const float* d_sums, float* d_prediction,
                             cudaStream_t stream) {
  if (s.rows == 0) return;
  squared_errors_backward_kernel<<<blocks_for(s.rows), kThreads, 0, stream>>>(s, d_sums,
                                                                              d_prediction);
  check_launch("squared_errors_backward");
}

}  // namespace aifs::model::cuda
