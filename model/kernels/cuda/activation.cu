// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/activation.h"

#include "model/kernels/cuda/gelu.cuh"
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

template <class T>
constexpr bool kExact = sizeof(T) == 4;

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    gelu_kernel(int64_t rows, int width, const T* __restrict__ pre, T* __restrict__ out) {
  const int64_t row = global_warp();
  if (row >= rows) return;
  Tile x;
  x.load(pre + row * width, width);
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(out + row * width, width);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    add_ends_kernel(int64_t rows, int width, EdgeActivation a) {
  const int64_t row = global_warp();
  if (row >= rows) return;
  T* pre = static_cast<T*>(a.pre) + row * width;
  Tile x, other;
  x.load(pre, width);
  other.load(static_cast<const T*>(a.at_target) + int64_t{a.ends.target[row]} * width, width);
  x.add(other);
  other.load(static_cast<const T*>(a.at_source) + int64_t{a.ends.source[row]} * width, width);
  x.add(other);
  other.load(a.bias, width);
  x.add(other);
  x.store(pre, width);
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(static_cast<T*>(a.out) + row * width, width);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    gelu_backward_kernel(int64_t rows, int width, GeluBackward b) {
  extern __shared__ float shared[];
  Tile sum;
  sum.fill(0.0f);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < rows; row += warps) {
    Tile pre, gradient;
    pre.load(static_cast<const T*>(b.pre) + row * width, width);
    T* place = static_cast<T*>(b.gradient) + row * width;
    gradient.load(place, width);
    Tile out;
#pragma unroll
    for (int k = 0; k < Tile::kChunks; ++k) {
#pragma unroll
      for (int i = 0; i < Tile::kVector; ++i) {
        const Gelu g = gelu<kExact<T>>(pre.x[k][i]);
        gradient.x[k][i] *= g.derivative;
        out.x[k][i] = g.value;
      }
    }
    gradient.store(place, width);
    if (b.out != nullptr) out.store(static_cast<T*>(b.out) + row * width, width);
    sum.add(gradient);
  }
  write_block_sum(sum, b.scratch + int64_t{blockIdx.x} * width, shared, width);
}

}  // namespace

void gelu_rows(const RowShape& shape, const void* pre, void* out, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_tile(shape, {pre, out}, [&]<class T, class Tile>() {
    gelu_kernel<T, Tile><<<blocks_for(shape.rows), kThreads, 0, stream>>>(
        shape.rows, static_cast<int>(shape.width), static_cast<const T*>(pre),
        static_cast<T*>(out));
    check_launch("gelu");
  });
}

void add_ends_and_gelu(const RowShape& shape, const EdgeActivation& a, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_tile(shape, {a.at_target, a.at_source, a.bias, a.pre, a.out},
                [&]<class T, class Tile>() {
                  add_ends_kernel<T, Tile><<<blocks_for(shape.rows), kThreads, 0, stream>>>(
                      shape.rows, static_cast<int>(shape.width), a);
                  check_launch("add_ends_and_gelu");
                });
}

void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream) {
  dispatch_tile(shape, {b.pre, b.gradient, b.out}, [&]<class T, class Tile>() {
    gelu_backward_kernel<T, Tile>
        <<<kColumnSumParts, kThreads, static_cast<size_t>(shape.width) * sizeof(float), stream>>>(
            shape.rows, static_cast<int>(shape.width), b);
    check_launch("gelu_backward");
  });
  add_column_sums(b.scratch, {b.column_sum}, shape.width, stream);
}

}  // namespace aifs::model::cuda
