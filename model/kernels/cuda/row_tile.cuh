// SPDX-License-Identifier: Apache-2.0
// One warp per row: each lane holds kChunks groups of kVector neighbouring columns in fp32, group k
// starting at column (k * 32 + lane) * kVector. Columns beyond the width read as zero.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>
#include <string>

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr int kWarpsPerBlock = 8;
inline constexpr int kThreads = kWarpSize * kWarpsPerBlock;

inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("kernel ") + kernel + ": " + cudaGetErrorString(error));
}

// Blocks of kThreads with one warp per item.
inline unsigned blocks_for(int64_t items) {
  return static_cast<unsigned>((items + kWarpsPerBlock - 1) / kWarpsPerBlock);
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}
template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

template <class T, int kVector>
struct alignas(sizeof(T) * kVector) Pack {
  T values[kVector];
};

template <int kVector_, int kChunks_>
struct RowTile {
  static constexpr int kVector = kVector_, kChunks = kChunks_;
  float x[kChunks][kVector];

  __device__ static int column(int chunk) {
    return (chunk * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize) * kVector;
  }

  __device__ void fill(float value) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        x[k][i] = value;
  }

  template <class T>
  __device__ void load(const T* __restrict__ row, int width) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k) {
      Pack<T, kVector> pack{};
      if (column(k) < width) pack = *reinterpret_cast<const Pack<T, kVector>*>(row + column(k));
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        x[k][i] = to_float(pack.values[i]);
    }
  }

  template <class T>
  __device__ void store(T* __restrict__ row, int width) const {
#pragma unroll
    for (int k = 0; k < kChunks; ++k) {
      Pack<T, kVector> pack;
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        pack.values[i] = from_float<T>(x[k][i]);
      if (column(k) < width) *reinterpret_cast<Pack<T, kVector>*>(row + column(k)) = pack;
    }
  }

  // this = f(this, other), element by element.
  template <class F>
  __device__ void combine(const RowTile& other, F f) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        x[k][i] = f(x[k][i], other.x[k][i]);
  }
  __device__ void add(const RowTile& other) {
    combine(other, [](float a, float b) { return a + b; });
  }

  template <class F>
  __device__ void apply(F f) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        x[k][i] = f(x[k][i]);
  }

  // Sum over the row, the same in every lane. Columns beyond the width must be zero.
  __device__ float sum() const {
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        s += x[k][i];
#pragma unroll
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2)
      s += __shfl_xor_sync(0xffffffffu, s, offset);
    return s;
  }
};

__device__ inline int64_t global_warp() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarpSize;
}

// Adds up the tiles of the warps of a block, in the order of the warps, and writes the sum to
// `part` (width floats of global memory). `shared` holds width floats. For all threads of a block.
template <class Tile>
__device__ void write_block_sum(const Tile& tile, float* __restrict__ part, float* shared,
                                int width) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  for (int turn = 0; turn < kWarpsPerBlock; ++turn) {
    __syncthreads();
    if (turn != warp) continue;
#pragma unroll
    for (int k = 0; k < Tile::kChunks; ++k) {
#pragma unroll
      for (int i = 0; i < Tile::kVector; ++i) {
        const int c = Tile::column(k) + i;
        if (c < width) shared[c] = turn == 0 ? tile.x[k][i] : shared[c] + tile.x[k][i];
      }
    }
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < width; c += kThreads)
    part[c] = shared[c];
}

// Adds to outs[i][c] the sum over the parts of scratch (parts, number of outs, width).
struct ColumnSums {
  float* outs[3];
};
void add_column_sums(const float* scratch, const ColumnSums& sums, int64_t width,
                     cudaStream_t stream, int64_t parts = kColumnSumParts);

// Calls with_type(T{}) for the element type.
template <class WithType>
void dispatch_type(ElementType type, WithType&& with_type) {
  switch (type) {
    case ElementType::kFloat32:
      return with_type(float{});
    case ElementType::kBFloat16:
      return with_type(__nv_bfloat16{});
    case ElementType::kFloat16:
      return with_type(__half{});
  }
}

// Calls launch.template operator()<T, RowTile>() with the element type and the tile that fit
// rows of this shape; all of `pointers` are row-wise data that vectors are read from.
template <class Launch>
void dispatch_tile(const RowShape& shape, std::initializer_list<const void*> pointers,
                   Launch&& launch) {
  if (shape.width > kMaxWidth || shape.width < 1) {
    throw std::runtime_error("rows of " + std::to_string(shape.width) + " columns, at most " +
                             std::to_string(kMaxWidth));
  }
  uintptr_t bits = 0;
  for (const void* pointer : pointers)
    bits |= reinterpret_cast<uintptr_t>(pointer);
  const auto with_type = [&]<class T>(T) {
    constexpr int kVector = 16 / sizeof(T);
    const bool vectors = shape.width % kVector == 0 && bits % 16 == 0;
    const int64_t lane_width = kWarpSize * (vectors ? kVector : 1);
    const int64_t chunks = (shape.width + lane_width - 1) / lane_width;
    if (!vectors) {  // odd widths need not be fast
      if (chunks <= 4) return launch.template operator()<T, RowTile<1, 4>>();
      return launch.template operator()<T, RowTile<1, kMaxWidth / kWarpSize>>();
    }
    if (chunks <= 1) return launch.template operator()<T, RowTile<kVector, 1>>();
    if (chunks <= 2) return launch.template operator()<T, RowTile<kVector, 2>>();
    if (chunks <= 4) return launch.template operator()<T, RowTile<kVector, 4>>();
    if (chunks <= 8) return launch.template operator()<T, RowTile<kVector, 8>>();
    if constexpr (kVector * kWarpSize * 8 < kMaxWidth)
      return launch.template operator()<T, RowTile<kVector, 16>>();
  };
  dispatch_type(shape.type, with_type);
}

}  // namespace aifs::model::cuda
