// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/segment_sum.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    segment_sum_kernel(int width, const T* __restrict__ rows, Groups groups, T* __restrict__ out) {
  const int64_t group = global_warp();
  if (group >= groups.count) return;
  Tile sum;
  sum.fill(0.0f);
  const int32_t end = groups.begin[group + 1];
#pragma unroll 2
  for (int32_t k = groups.begin[group]; k < end; ++k) {
    const int64_t row = groups.list != nullptr ? groups.list[k] : k;
    Tile x;
    x.load(rows + row * width, width);
    sum.add(x);
  }
  sum.store(out + group * width, width);
}

}  // namespace

void segment_sum(const RowShape& shape, const void* rows, const Groups& groups, void* out,
                 cudaStream_t stream) {
  if (groups.count == 0) return;
  dispatch_tile(shape, {rows, out}, [&]<class T, class Tile>() {
    segment_sum_kernel<T, Tile><<<blocks_for(groups.count), kThreads, 0, stream>>>(
        static_cast<int>(shape.width), static_cast<const T*>(rows), groups, static_cast<T*>(out));
    check_launch("segment_sum");
  });
}

}  // namespace aifs::model::cuda
