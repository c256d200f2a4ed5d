// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/layer_norm.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

// Sets columns beyond the width to zero, where arithmetic made them something else.
template <class Tile>
__device__ void clear_beyond(Tile& tile, int width) {
#pragma unroll
  for (int k = 0; k < Tile::kChunks; ++k) {
    if (Tile::column(k) < width) continue;
#pragma unroll
    for (int i = 0; i < Tile::kVector; ++i)
      tile.x[k][i] = 0.0f;
  }
}

template <class T, class Tile>
__device__ void norm_row(const NormForward& f, int64_t row, int width, Tile& x) {
  x.load(static_cast<const T*>(f.z) + row * width, width);
  const float mean = x.sum() / static_cast<float>(width);
  x.apply([=](float v) { return v - mean; });
  clear_beyond(x, width);
  Tile square = x;
  square.apply([](float v) { return v * v; });
  const float inverse = rsqrtf(square.sum() / static_cast<float>(width) + f.eps);
  Tile other;
  other.load(f.weight, width);
  x.combine(other, [=](float v, float w) { return v * inverse * w; });
  other.load(f.bias, width);
  x.add(other);
  if (f.residual != nullptr) {
    other.load(static_cast<const T*>(f.residual) + row * width, width);
    x.add(other);
  }
  x.store(static_cast<T*>(f.out) + row * width, width);
  if (threadIdx.x % kWarpSize == 0) {
    reinterpret_cast<float2*>(f.statistics)[row] = make_float2(mean, inverse);
  }
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    norm_forward_kernel(int64_t rows, int width, NormForward f) {
  const int64_t item = global_warp();
  Tile x;
  if (f.groups.begin == nullptr) {
    if (item < rows) norm_row<T>(f, item, width, x);
    return;
  }
  if (item >= f.groups.count) return;
  Tile sum;
  sum.fill(0.0f);
  const int32_t end = f.groups.begin[item + 1];
  for (int32_t row = f.groups.begin[item]; row < end; ++row) {
    norm_row<T>(f, row, width, x);
    sum.add(x);
  }
  sum.store(static_cast<T*>(f.sums) + item * width, width);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    norm_backward_kernel(int64_t rows, int width, NormBackward b) {
  extern __shared__ float shared[];
  Tile sum_weight, sum_bias, sum_z;
  sum_weight.fill(0.0f);
  sum_bias.fill(0.0f);
  sum_z.fill(0.0f);
  const float scale = 1.0f / static_cast<float>(width);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < rows; row += warps) {
    Tile g, x, other;
    x.load(static_cast<const T*>(b.z) + row * width, width);
    if (b.d_out != nullptr) {
      g.load(static_cast<const T*>(b.d_out) + row * width, width);
    } else {
      g.fill(0.0f);
    }
    if (b.d_sums != nullptr) {
      other.load(static_cast<const T*>(b.d_sums) + int64_t{b.target[row]} * width, width);
      g.add(other);
    }
    if (b.d_residual != nullptr) g.store(static_cast<T*>(b.d_residual) + row * width, width);
    const float2 statistics = reinterpret_cast<const float2*>(b.statistics)[row];
    x.apply([=](float v) { return (v - statistics.x) * statistics.y; });
    clear_beyond(x, width);
    sum_bias.add(g);
    other = g;
    other.combine(x, [](float v, float normal) { return v * normal; });
    sum_weight.add(other);
    other.load(b.weight, width);
    g.combine(other, [](float v, float w) { return v * w; });
    other = g;
    other.combine(x, [](float v, float normal) { return v * normal; });
    const float mean = g.sum() * scale, along = other.sum() * scale;
    g.combine(x, [=](float v, float normal) { return statistics.y * (v - mean - normal * along); });
    clear_beyond(g, width);
    g.store(static_cast<T*>(b.d_z) + row * width, width);
    sum_z.add(g);
  }
  float* part = b.scratch + int64_t{blockIdx.x} * 3 * width;
  write_block_sum(sum_weight, part, shared, width);
  write_block_sum(sum_bias, part + width, shared, width);
  write_block_sum(sum_z, part + 2 * width, shared, width);
}

}  // namespace

void layer_norm_forward(const RowShape& shape, const NormForward& f, cudaStream_t stream) {
  const int64_t items = f.groups.begin != nullptr ? f.groups.count : shape.rows;
  if (items == 0) return;
  dispatch_tile(shape, {f.z, f.residual, f.weight, f.bias, f.out, f.sums},
                [&]<class T, class Tile>() {
                  norm_forward_kernel<T, Tile><<<blocks_for(items), kThreads, 0, stream>>>(
                      shape.rows, static_cast<int>(shape.width), f);
                  check_launch("layer_norm_forward");
                });
}

void layer_norm_backward(const RowShape& shape, const NormBackward& b, cudaStream_t stream) {
  dispatch_tile(
      shape, {b.d_out, b.d_sums, b.z, b.weight, b.d_residual, b.d_z}, [&]<class T, class Tile>() {
        norm_backward_kernel<T, Tile>
            <<<kColumnSumParts, kThreads, static_cast<size_t>(shape.width) * sizeof(float),
               stream>>>(shape.rows, static_cast<int>(shape.width), b);
        check_launch("layer_norm_backward");
      });
  finish_column_sums(b.scratch, b.column_sums, 3 * shape.width, stream);
}

}  // namespace aifs::model::cuda
