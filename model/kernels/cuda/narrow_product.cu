// SPDX-License-Identifier: Apache-2.0
// A block walks over tiles of 64 rows, which come to shared memory two tiles ahead. Of each, a warp
// forms 16 rows by 8 columns of d weight, and adds to d^T x of its own columns of d, which stays in
// registers until the end. The blocks' sums are added up in their order.
#include "model/kernels/cuda/narrow_product.h"

#include <algorithm>

#include "model/kernels/cuda/current_card.h"
#include "model/kernels/cuda/row_tile.cuh"
#include "model/kernels/cuda/shared_room.h"

namespace aifs::model::cuda {

namespace {

using Bf16 = __nv_bfloat16;

constexpr int kTileRows = 64, kStages = 3, kUnit = 8;  // columns of 16 bytes
constexpr int kIn = static_cast<int>(kNarrowColumns);
constexpr int kWidthStep = 128, kMaxSteps = 4;

// Rows lie an odd number of units apart: eight of them are in different banks.
template <int kSteps>
struct Stage {
  static constexpr int kWidth = kSteps * kWidthStep;
  alignas(16) Bf16 d[kTileRows][kWidth + kUnit];
  Bf16 x[kTileRows][kIn + kUnit];
};

__device__ inline uint32_t address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// 16 bytes, or zeros.
__device__ inline void ask(Bf16* to, const Bf16* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}

// Four 8 x 8 matrices, of which each lane names a row: as they lie, or transposed.
__device__ inline void load_matrices(uint32_t (&to)[4], const Bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address(row))
               : "memory");
}
__device__ inline void load_transposed(uint32_t (&to)[4], const Bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address(row))
               : "memory");
}
__device__ inline void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline uint32_t pair_of(Bf16 low, Bf16 high) {
  const __nv_bfloat162 pair = __halves2bfloat162(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

template <int kSteps>
__device__ void ask_for_tile(Stage<kSteps>& stage, const NarrowProduct& p, int64_t tile) {
  constexpr int kUnits = Stage<kSteps>::kWidth / kUnit, kInUnits = kIn / kUnit;
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t first = tile * kTileRows;
  const auto* d = static_cast<const Bf16*>(p.d);
  const auto* x = static_cast<const Bf16*>(p.x);
#pragma unroll 4
  for (int i = thread; i < kTileRows * kUnits; i += kThreads) {
    const int row = i / kUnits, column = i % kUnits * kUnit;
    const bool there = first + row < p.rows;
    ask(&stage.d[row][column], d + (there ? first + row : 0) * p.width + column, there);
  }
  if (thread < kTileRows * kInUnits) {
    const int row = thread / kInUnits, column = thread % kInUnits * kUnit;
    const bool there = first + row < p.rows;
    ask(&stage.x[row][column], x + (there ? first + row : 0) * kIn + column, there);
  }
}

template <int kSteps>
__global__ void __launch_bounds__(kThreads, 1) narrow_product_kernel(NarrowProduct p) {
  constexpr int kWidth = Stage<kSteps>::kWidth, kDepths = kWidth / 16;
  static_assert(kThreads == 256);  // four times 16 rows by two times 8 columns
  extern __shared__ __align__(16) uint8_t dynamic[];
  auto* stages = reinterpret_cast<Stage<kSteps>*>(dynamic);
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int row16 = warp % 4 * 16, column8 = warp / 4 * 8;  // of d weight
  const int own = warp * (kWidth / kWarpsPerBlock);         // columns of d
  const int low = lane % 8, second = lane / 8 % 2, third = lane / 16;

  uint32_t w[kDepths][2];  // of the weight, as an operand
#pragma unroll
  for (int k = 0; k < kDepths; ++k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Bf16* from = static_cast<const Bf16*>(p.weight) +
                         (16 * k + 8 * half + 2 * (lane % 4)) * kIn + column8 + lane / 4;
      w[k][half] = pair_of(from[0], from[kIn]);
    }
  }
  float sums[kSteps][2][4] = {};  // d^T x: 16 columns of d by 8 of x each

  const int64_t tiles = (p.rows + kTileRows - 1) / kTileRows, step = gridDim.x;
  int64_t next = blockIdx.x;
  int free = 0, now = 0;
  const auto turn = [](int& place) { place = place + 1 == kStages ? 0 : place + 1; };
  const auto ask_next = [&] {
    if (next < tiles) ask_for_tile(stages[free], p, next);
    asm volatile("cp.async.commit_group;" ::: "memory");
    next += step;
    turn(free);
  };
#pragma unroll
  for (int i = 0; i + 1 < kStages; ++i)
    ask_next();
  for (int64_t tile = blockIdx.x; tile < tiles; tile += step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();  // the tile is there for all, and the one before is done with
    ask_next();
    const Stage<kSteps>& s = stages[now];
    turn(now);

    float d_x[2][4] = {};  // of even and odd depths
#pragma unroll
    for (int k = 0; k < kDepths; ++k) {
      uint32_t a[4];
      load_matrices(a, &s.d[row16 + low + 8 * second][16 * k + 8 * third]);
      multiply(d_x[k % 2], a, w[k][0], w[k][1]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = tile * kTileRows + row16 + lane / 4 + 8 * half;
      if (row < p.rows) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(
            d_x[0][2 * half] + d_x[1][2 * half], d_x[0][2 * half + 1] + d_x[1][2 * half + 1]);
        *reinterpret_cast<__nv_bfloat162*>(static_cast<Bf16*>(p.d_x) + row * kIn + column8 +
                                           2 * (lane % 4)) = pair;
      }
    }
#pragma unroll
    for (int k = 0; k < kTileRows / 16; ++k) {
      uint32_t b[4];
      load_transposed(b, &s.x[16 * k + low + 8 * second][8 * third]);
#pragma unroll
      for (int m = 0; m < kSteps; ++m) {
        uint32_t a[4];
        load_transposed(a, &s.d[16 * k + low + 8 * third][own + 16 * m + 8 * second]);
        multiply(sums[m][0], a, b[0], b[1]);
        multiply(sums[m][1], a, b[2], b[3]);
      }
    }
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");

  float* part = p.scratch + int64_t{blockIdx.x} * kWidth * p.weight_columns;
#pragma unroll
  for (int m = 0; m < kSteps; ++m) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = own + 16 * m + lane / 4 + 8 * (i % 4 / 2);
      const int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      if (column < p.weight_columns) part[row * p.weight_columns + column] = sums[m][i / 4][i % 4];
    }
  }
}

template <int kSteps>
void launch(const NarrowProduct& p, int64_t blocks, cudaStream_t stream) {
  auto* kernel = &narrow_product_kernel<kSteps>;
  constexpr int kBytes = kStages * static_cast<int>(sizeof(Stage<kSteps>));
  [[maybe_unused]] static const bool room = make_room(kernel, kBytes, "narrow_product");
  kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(p);
  check_launch("narrow_product");
}

}  // namespace

bool narrow_product_supported(int64_t width) {
  return width > 0 && width % kWidthStep == 0 && width <= kWidthStep * kMaxSteps &&
         current_card().major == 9;
}

void narrow_product_backward(const NarrowProduct& p, cudaStream_t stream) {
  if (p.rows == 0) return;
  const int64_t tiles = (p.rows + kTileRows - 1) / kTileRows;
  const int64_t blocks =
      std::min({tiles, static_cast<int64_t>(current_card().processors), kColumnSumParts});
  switch (p.width / kWidthStep) {
    case 1:
      launch<1>(p, blocks, stream);
      break;
    case 2:
      launch<2>(p, blocks, stream);
      break;
    case 3:
      launch<3>(p, blocks, stream);
      break;
    default:
      launch<4>(p, blocks, stream);
  }
  add_column_sums(p.scratch, {p.d_weight}, p.width * p.weight_columns, stream, blocks);
}

}  // namespace aifs::model::cuda
