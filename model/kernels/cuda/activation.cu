// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/activation.h"

#include "model/kernels/cuda/gelu.cuh"
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

// A derivative in 8 bits, as an element of rows.
struct Slope {
  uint8_t code;
};
__device__ inline float to_float(Slope slope) {
  return decode_slope(slope.code, 0);
}
template <>
__device__ inline Slope from_float<Slope>(float derivative) {
  return {static_cast<uint8_t>(encode_slope(derivative))};
}

namespace {

template <class T>
constexpr bool kExact = sizeof(T) == 4;

template <class T, class Tile, bool kEnds>
__global__ void __launch_bounds__(kThreads)
    activate_kernel(int64_t rows, int width, RowActivation a) {
  const int64_t row = global_warp();
  if (row >= rows) return;
  const int64_t place = row * width;
  Tile x, other;
  x.load(static_cast<const T*>(a.product) + place, width);
  if constexpr (kEnds) {
    other.load(static_cast<const T*>(a.at_target) + int64_t{a.ends.target[row]} * width, width);
    x.add(other);
    other.load(static_cast<const T*>(a.at_source) + int64_t{a.ends.source[row]} * width, width);
    x.add(other);
    other.load(a.bias, width);
    x.add(other);
  }
  if (a.pre != nullptr) x.store(static_cast<T*>(a.pre) + place, width);
  if (a.slope != nullptr) {
    other = x;
    other.apply([](float v) { return gelu<kExact<T>>(v).derivative; });
    other.store(reinterpret_cast<Slope*>(a.slope) + place, width);
  }
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(static_cast<T*>(a.out) + place, width);
}

template <class T, class Tile, bool kFromSlope>
__global__ void __launch_bounds__(kThreads)
    gelu_backward_kernel(int64_t rows, int width, GeluBackward b) {
  extern __shared__ float shared[];
  Tile sum;
  sum.fill(0.0f);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < rows; row += warps) {
    Tile derivative, gradient;
    T* place = static_cast<T*>(b.gradient) + row * width;
    gradient.load(place, width);
    if constexpr (kFromSlope) {
      derivative.load(reinterpret_cast<const Slope*>(b.slope) + row * width, width);
    } else {
      Tile out;
      out.load(static_cast<const T*>(b.pre) + row * width, width);
#pragma unroll
      for (int k = 0; k < Tile::kChunks; ++k) {
#pragma unroll
        for (int i = 0; i < Tile::kVector; ++i) {
          const Gelu g = gelu<kExact<T>>(out.x[k][i]);
          derivative.x[k][i] = g.derivative;
          out.x[k][i] = g.value;
        }
      }
      if (b.out != nullptr) out.store(static_cast<T*>(b.out) + row * width, width);
    }
    gradient.combine(derivative, [](float g, float d) { return g * d; });
    gradient.store(place, width);
    sum.add(gradient);
  }
  write_block_sum(sum, b.scratch + int64_t{blockIdx.x} * width, shared, width);
}

}  // namespace

void activate_rows(const RowShape& shape, const RowActivation& a, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_tile(shape, {a.product, a.at_target, a.at_source, a.bias, a.pre, a.out, a.slope},
                [&]<class T, class Tile>() {
                  auto* kernel = a.at_target != nullptr ? &activate_kernel<T, Tile, true>
                                                        : &activate_kernel<T, Tile, false>;
                  kernel<<<blocks_for(shape.rows), kThreads, 0, stream>>>(
                      shape.rows, static_cast<int>(shape.width), a);
                  check_launch("activate_rows");
                });
}

void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream) {
  dispatch_tile(shape, {b.pre, b.slope, b.gradient, b.out}, [&]<class T, class Tile>() {
    auto* kernel = b.slope != nullptr ? &gelu_backward_kernel<T, Tile, true>
                                      : &gelu_backward_kernel<T, Tile, false>;
    kernel<<<kColumnSumParts, kThreads, static_cast<size_t>(shape.width) * sizeof(float), stream>>>(
        shape.rows, static_cast<int>(shape.width), b);
    check_launch("gelu_backward");
  });
  add_column_sums(b.scratch, {b.column_sum}, shape.width, stream);
}

}  // namespace aifs::model::cuda
