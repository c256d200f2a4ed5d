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

// A row in memory and the slice of it that a block works on, blockIdx.y of so many columns.
struct Slices {
  int64_t rows, stride;
  int width;
  __device__ int64_t first() const { return int64_t{blockIdx.y} * width; }
  __device__ int64_t at(int64_t row) const { return row * stride + first(); }
};

// Calls launch.template operator()<T, RowTile>(slices, number of them) with the tile of a slice.
template <class Launch>
void dispatch_slices(const RowShape& shape, std::initializer_list<const void*> pointers,
                     Launch&& launch) {
  const RowShape slice{shape.rows, slice_width(shape.width), shape.type};
  const Slices slices{shape.rows, shape.width, static_cast<int>(slice.width)};
  dispatch_tile(slice, pointers, [&]<class T, class Tile>() {
    launch.template operator()<T, Tile>(slices, static_cast<unsigned>(shape.width / slice.width));
  });
}

template <class T, class Tile, bool kEnds>
__global__ void __launch_bounds__(kThreads) activate_kernel(Slices s, RowActivation a) {
  const int64_t row = global_warp();
  if (row >= s.rows) return;
  const int64_t place = s.at(row);
  Tile x, other;
  x.load(static_cast<const T*>(a.product) + place, s.width);
  if constexpr (kEnds) {
    other.load(static_cast<const T*>(a.at_target) + s.at(a.ends.target[row]), s.width);
    x.add(other);
    other.load(static_cast<const T*>(a.at_source) + s.at(a.ends.source[row]), s.width);
    x.add(other);
    other.load(a.bias + s.first(), s.width);
    x.add(other);
  }
  if (a.pre != nullptr) x.store(static_cast<T*>(a.pre) + place, s.width);
  if (a.slope != nullptr) {
    other = x;
    other.apply([](float v) { return gelu<kExact<T>>(v).derivative; });
    other.store(reinterpret_cast<Slope*>(a.slope) + place, s.width);
  }
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(static_cast<T*>(a.out) + place, s.width);
}

template <class T, class Tile, bool kFromSlope>
__global__ void __launch_bounds__(kThreads) gelu_backward_kernel(Slices s, GeluBackward b) {
  extern __shared__ float shared[];
  Tile sum;
  sum.fill(0.0f);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < s.rows; row += warps) {
    Tile derivative, gradient;
    T* place = static_cast<T*>(b.gradient) + s.at(row);
    gradient.load(place, s.width);
    if constexpr (kFromSlope) {
      derivative.load(reinterpret_cast<const Slope*>(b.slope) + s.at(row), s.width);
    } else {
      Tile out;
      out.load(static_cast<const T*>(b.pre) + s.at(row), s.width);
#pragma unroll
      for (int k = 0; k < Tile::kChunks; ++k) {
#pragma unroll
        for (int i = 0; i < Tile::kVector; ++i) {
          const Gelu g = gelu<kExact<T>>(out.x[k][i]);
          derivative.x[k][i] = g.derivative;
          out.x[k][i] = g.value;
        }
      }
      if (b.out != nullptr) out.store(static_cast<T*>(b.out) + s.at(row), s.width);
    }
    gradient.combine(derivative, [](float g, float d) { return g * d; });
    gradient.store(place, s.width);
    sum.add(gradient);
  }
  write_block_sum(sum, b.scratch + s.at(blockIdx.x), shared, s.width);
}

// Two rows at a time, so that enough of them are on their way.
template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    column_sums_kernel(Slices s, const T* __restrict__ rows, float* __restrict__ scratch) {
  extern __shared__ float shared[];
  Tile sum, a, b;
  sum.fill(0.0f);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < s.rows; row += 2 * warps) {
    a.load(rows + s.at(row), s.width);
    b.fill(0.0f);
    if (row + warps < s.rows) b.load(rows + s.at(row + warps), s.width);
    sum.add(a);
    sum.add(b);
  }
  write_block_sum(sum, scratch + s.at(blockIdx.x), shared, s.width);
}

unsigned shared_bytes(const Slices& slices) {
  return static_cast<unsigned>(slices.width) * sizeof(float);
}

}  // namespace

void activate_rows(const RowShape& shape, const RowActivation& a, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_slices(shape, {a.product, a.at_target, a.at_source, a.bias, a.pre, a.out, a.slope},
                  [&]<class T, class Tile>(const Slices& slices, unsigned n) {
                    auto* kernel = a.at_target != nullptr ? &activate_kernel<T, Tile, true>
                                                          : &activate_kernel<T, Tile, false>;
                    kernel<<<dim3(blocks_for(shape.rows), n), kThreads, 0, stream>>>(slices, a);
                    check_launch("activate_rows");
                  });
}

void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream) {
  dispatch_slices(shape, {b.pre, b.slope, b.gradient, b.out},
                  [&]<class T, class Tile>(const Slices& slices, unsigned n) {
                    auto* kernel = b.slope != nullptr ? &gelu_backward_kernel<T, Tile, true>
                                                      : &gelu_backward_kernel<T, Tile, false>;
                    kernel<<<dim3(kColumnSumParts, n), kThreads, shared_bytes(slices), stream>>>(
                        slices, b);
                    check_launch("gelu_backward");
                  });
  add_column_sums(b.scratch, {b.column_sum}, shape.width, stream);
}

void column_sums(const RowShape& shape, const void* rows, float* sum, float* scratch,
                 cudaStream_t stream) {
  dispatch_slices(shape, {rows}, [&]<class T, class Tile>(const Slices& slices, unsigned n) {
    column_sums_kernel<T, Tile>
        <<<dim3(kColumnSumParts, n), kThreads, shared_bytes(slices), stream>>>(
            slices, static_cast<const T*>(rows), scratch);
    check_launch("column_sums");
  });
  add_column_sums(scratch, {sum}, shape.width, stream);
}

}  // namespace aifs::model::cuda
