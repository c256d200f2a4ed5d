// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/activation.h"

#include "model/kernels/cuda/gelu.cuh"
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

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

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    gelu_kernel(Slices s, const T* __restrict__ pre, T* __restrict__ out) {
  const int64_t row = global_warp();
  if (row >= s.rows) return;
  Tile x;
  x.load(pre + s.at(row), s.width);
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(out + s.at(row), s.width);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads) add_ends_kernel(Slices s, EdgeActivation a) {
  const int64_t row = global_warp();
  if (row >= s.rows) return;
  T* pre = static_cast<T*>(a.pre) + s.at(row);
  Tile x, other;
  x.load(pre, s.width);
  other.load(static_cast<const T*>(a.at_target) + s.at(a.ends.target[row]), s.width);
  x.add(other);
  other.load(static_cast<const T*>(a.at_source) + s.at(a.ends.source[row]), s.width);
  x.add(other);
  other.load(a.bias + s.first(), s.width);
  x.add(other);
  x.store(pre, s.width);
  x.apply([](float v) { return gelu<kExact<T>>(v).value; });
  x.store(static_cast<T*>(a.out) + s.at(row), s.width);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads) gelu_backward_kernel(Slices s, GeluBackward b) {
  extern __shared__ float shared[];
  Tile sum;
  sum.fill(0.0f);
  const int64_t warps = int64_t{gridDim.x} * kWarpsPerBlock;
  for (int64_t row = global_warp(); row < s.rows; row += warps) {
    Tile pre, gradient;
    pre.load(static_cast<const T*>(b.pre) + s.at(row), s.width);
    T* place = static_cast<T*>(b.gradient) + s.at(row);
    gradient.load(place, s.width);
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
    gradient.store(place, s.width);
    if (b.out != nullptr) out.store(static_cast<T*>(b.out) + s.at(row), s.width);
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

void gelu_rows(const RowShape& shape, const void* pre, void* out, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_slices(shape, {pre, out}, [&]<class T, class Tile>(const Slices& slices, unsigned n) {
    gelu_kernel<T, Tile><<<dim3(blocks_for(shape.rows), n), kThreads, 0, stream>>>(
        slices, static_cast<const T*>(pre), static_cast<T*>(out));
    check_launch("gelu");
  });
}

void add_ends_and_gelu(const RowShape& shape, const EdgeActivation& a, cudaStream_t stream) {
  if (shape.rows == 0) return;
  dispatch_slices(shape, {a.at_target, a.at_source, a.bias, a.pre, a.out},
                  [&]<class T, class Tile>(const Slices& slices, unsigned n) {
                    add_ends_kernel<T, Tile>
                        <<<dim3(blocks_for(shape.rows), n), kThreads, 0, stream>>>(slices, a);
                    check_launch("add_ends_and_gelu");
                  });
}

void gelu_backward(const RowShape& shape, const GeluBackward& b, cudaStream_t stream) {
  dispatch_slices(shape, {b.pre, b.gradient, b.out},
                  [&]<class T, class Tile>(const Slices& slices, unsigned n) {
                    gelu_backward_kernel<T, Tile>
                        <<<dim3(kColumnSumParts, n), kThreads, shared_bytes(slices), stream>>>(
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
