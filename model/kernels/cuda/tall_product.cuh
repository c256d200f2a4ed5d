// SPDX-License-Identifier: Apache-2.0
// How the blocks of tall_product.cu work where the weight is at most 512 deep; deep_product.cuh
// says how they do beyond.
//
// A block keeps 128 columns of the product, and so 128 rows of the weight, in shared memory for its
// whole life, and walks over tiles of 64 rows. Two or three warpgroups take tiles in turn, each fed
// by a copying warp of its own through a ring of pieces 64 deep, so that the epilogue of one runs
// under the products of the other. A ring must not be shared: a warpgroup one phase ahead would
// pass the wait for the other's piece.
//
// The epilogue works from registers. A lane of a product holds two neighbouring columns of every
// eighth. The weight lies in shared memory with its columns in such an order (reorder_columns())
// that these are eight neighbours of the matrix, 16 bytes.
#pragma once

#include "model/kernels/cuda/gelu.cuh"
#include "model/kernels/cuda/hopper.cuh"
#include "model/kernels/cuda/row_tile.cuh"
#include "model/kernels/cuda/tall_product.h"

namespace aifs::model::cuda {

namespace {

using Bf16 = __nv_bfloat16;
using hopper::Barrier;

constexpr int kTileRows = 64, kColumns = 128, kPieceDepth = 64, kMaxPieces = 8, kBoxColumns = 64;
constexpr int kOrdered = 32;  // columns of a weight that are put in order together
constexpr int kWarpsPerGroup = 4;
constexpr int kPieceBytes = kTileRows * kPieceDepth * 2;
constexpr int kWeightPieceBytes = kColumns * kPieceDepth * 2;

enum class Kind { kBias, kGelu, kGeluAdd, kGeluGather, kBackward, kBackwardSlope, kSum };
template <Kind kKind>
constexpr bool kIsForward = kKind <= Kind::kGeluGather;
template <Kind kKind>
constexpr bool kIsBackward = kKind == Kind::kBackward || kKind == Kind::kBackwardSlope;
enum class Kept { kNothing, kPre, kSlope };  // of a forward kind, beside its GELUs

// A plain GELU, or none, needs so few registers that a third warpgroup fits.
template <Kind kKind>
struct Shape {
  static constexpr int kGroups = kKind <= Kind::kGelu ? 3 : 2;
  static constexpr int kPieces = 12, kStages = kPieces / kGroups;
  static constexpr int kConsumers = kGroups * kWarpsPerGroup * kWarpSize;
  static constexpr int kThreads = kConsumers + kGroups * kWarpSize;
  static constexpr int kSharedBytes = kMaxPieces * kWeightPieceBytes + kPieces * kPieceBytes + 1024;
};

struct Task {
  int rows, width, depth, own_depth;  // the latter that of x alone
  ProductGelu forward;
  ProductGeluBackward backward;
  ProductSum sum;
};

// Phi as in gelu.cuh by way of one tanh instruction; s of square().
__device__ inline float square(float x) {
  return fminf(x * x, 36.0f);
}
__device__ inline float fast_phi(float x, float s) {
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * gelu_polynomial(s)));
  return 0.5f + 0.5f * t;
}
// x Phi(x) and its derivative.
__device__ inline Gelu fast_gelu(float x) {
  const float s = square(x), phi = fast_phi(x, s), value = x * phi;
  return {value, phi + value * (1.0f - phi) * 2.0f * gelu_polynomial_slope(s)};
}

__device__ inline float2 unpack(uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
__device__ inline uint32_t pack(float x, float y) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<uint32_t*>(&pair);
}

struct Unit {  // eight columns of one row
  uint32_t pairs[4];
};
__device__ inline Unit pack(const float (&x)[8]) {
  return {{pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7])}};
}

// GELUs of eight values and, kSlopes, their derivatives in 8 bits. Step by step for all, which
// hides how long each takes; derivatives in half precision, a fifth of a step of their codes.
template <bool kSlopes>
__device__ inline Unit fast_gelus(const float (&x)[8], uint2& slopes) {
  float s[8], phi[8], value[8];
  Unit out;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    s[i] = square(x[i]);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    phi[i] = fast_phi(x[i], s[i]);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    value[i] = x[i] * phi[i];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    out.pairs[k] = pack(value[2 * k], value[2 * k + 1]);
  if constexpr (kSlopes) {
    uint32_t codes[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto halves = [k](const float(&v)[8]) {
        return __floats2half2_rn(v[2 * k], v[2 * k + 1]);
      };
      const __half2 p = halves(phi), squares = halves(s);
      const __half2 rest = __floats2half2_rn(value[2 * k] - value[2 * k] * phi[2 * k],
                                             value[2 * k + 1] - value[2 * k + 1] * phi[2 * k + 1]);
      codes[k] = encode_slopes(__hfma2(rest, gelu_polynomial_slope<2>(squares), p));
    }
    slopes = make_uint2(__byte_perm(codes[0], codes[1], 0x6420),
                        __byte_perm(codes[2], codes[3], 0x6420));
  }
  return out;
}

// Volatile: asked for where it stands in the text, before the products.
__device__ inline Unit load_unit(const Bf16* from, bool valid) {
  Unit u{{0, 0, 0, 0}};
  if (valid) {
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(u.pairs[0]), "=r"(u.pairs[1]), "=r"(u.pairs[2]), "=r"(u.pairs[3])
                 : "l"(from));
  }
  return u;
}
__device__ inline void store_unit(Bf16* to, const Unit& u, bool valid) {
  if (valid)
    *reinterpret_cast<uint4*>(to) = make_uint4(u.pairs[0], u.pairs[1], u.pairs[2], u.pairs[3]);
}

__device__ inline uint2 load_slopes(const uint8_t* from, bool valid) {
  uint2 u{0, 0};
  if (valid) asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(u.x), "=r"(u.y) : "l"(from));
  return u;
}

template <int kStages>
struct Ring {
  Barrier full[kStages], empty[kStages];
};

template <int kStages>
struct Place {  // in a ring
  int stage = 0;
  uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Whose tiles are whose: warpgroup g of block b starts at first() and takes every step()-th.
struct Share {
  int column, team, first, step, tiles, pieces;
  __device__ Share(const Task& task, int warpgroup, int warpgroups) {
    const int slices = task.width / kColumns, block = static_cast<int>(blockIdx.x);
    const int teams = static_cast<int>(gridDim.x) / slices;
    column = block % slices * kColumns;
    team = block / slices;
    first = team + warpgroup * teams;
    step = warpgroups * teams;
    tiles = (task.rows + kTileRows - 1) / kTileRows;
    pieces = (task.depth + kPieceDepth - 1) / kPieceDepth;
  }
};

template <int kStages>
__device__ void feed(const CUtensorMap& x, Ring<kStages>& ring, uint8_t* pieces,
                     const Share& share) {
  Place<kStages> place;
  place.phase = 1;  // all pieces are free at the start
  for (int tile = share.first; tile < share.tiles; tile += share.step) {
    for (int k = 0; k < share.pieces; ++k) {
      ring.empty[place.stage].wait(place.phase);
      ring.full[place.stage].arrive_and_expect(kPieceBytes);
      hopper::copy_box(pieces + place.stage * kPieceBytes, x, ring.full[place.stage],
                       k * kPieceDepth, tile * kTileRows);
      place.advance();
    }
  }
}

// One warpgroup's work on its tiles.
template <Kind kKind, Kept kKept>
struct Worker {
  using Own = Shape<kKind>;
  static constexpr int kHalves = 2, kUnits = 4 * kHalves;  // of a warp's rows, in units
  static constexpr bool kGather = kKind == Kind::kGeluGather || kKind == Kind::kSum;
  static constexpr bool kFromPre = kKind == Kind::kBackward;
  static constexpr bool kFromSlope = kKind == Kind::kBackwardSlope;
  static constexpr bool kBackward = kIsBackward<kKind>, kWeightColumns = !kIsForward<kKind>;
  static constexpr bool kLoads = kKind > Kind::kGelu && !kFromSlope;

  const Task& task;
  const Share& share;
  const float* bias;  // of the block's columns, in shared memory
  int warp, lane, q;
  Place<Own::kStages> place;
  float acc[64];
  // Unit i: row half i % kHalves, columns 32 (i / kHalves) + 8 q ...
  Unit loaded[kLoads ? kUnits : 1];
  uint2 slopes[kFromSlope ? kUnits : 1];
  float sums[kBackward ? 32 : 1];
  int next_target[kHalves], next_source[kHalves];

  __device__ Worker(const Task& task_, const Share& share_, const float* bias_)
      : task(task_),
        share(share_),
        bias(bias_),
        warp(static_cast<int>(threadIdx.x) / kWarpSize % kWarpsPerGroup),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        q(lane % 4) {
#pragma unroll
    for (float& sum : sums)
      sum = 0.0f;
  }

  __device__ int row_of(int tile, int half) const {
    return tile * kTileRows + 16 * warp + lane / 4 + 8 * half;
  }
  __device__ int64_t at(int row, int unit) const {
    return int64_t{row} * task.width + (share.column + 8 * q) + 32 * (unit / kHalves);
  }

  // The ends of a tile's edges, asked for one tile ahead.
  __device__ void ask_for_ends(int tile) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const int row = row_of(tile, half);
      const bool valid = row < task.rows;
      const int32_t* target = kKind == Kind::kSum ? task.sum.target : task.forward.ends.target;
      next_target[half] = valid && target != nullptr ? target[row] : 0;
      if constexpr (kKind == Kind::kGeluGather)
        next_source[half] = valid ? task.forward.ends.source[row] : 0;
    }
  }

  // Where the sums of a pair of columns of unit i are.
  __device__ static constexpr int first_sum(int unit, int pair) {
    return 4 * (4 * (unit / kHalves) + pair) + 2 * (unit % kHalves);
  }

  // The derivative at unit i of `loaded` replaces it; the GELU is stored.
  __device__ void differentiate(int i, int row, bool valid) {
    Unit value;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 pre = unpack(loaded[i].pairs[k]);
      const Gelu x = fast_gelu(pre.x), y = fast_gelu(pre.y);
      value.pairs[k] = pack(x.value, y.value);
      loaded[i].pairs[k] = pack(x.derivative, y.derivative);
    }
    store_unit(static_cast<Bf16*>(task.backward.out) + at(row, i), value,
               valid && task.backward.out != nullptr);
  }

  __device__ void finish_backward(const int (&rows)[kHalves], const bool (&valid)[kHalves]) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      Unit out;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int s = first_sum(i, k), column = 2 * (4 * (i / kHalves) + k);
        float2 derivative;
        if constexpr (kFromSlope) {
          const uint32_t codes = k < 2 ? slopes[i].x : slopes[i].y;
          derivative =
              make_float2(decode_slope(codes, 2 * (k % 2)), decode_slope(codes, 2 * (k % 2) + 1));
        } else {
          derivative = unpack(loaded[i].pairs[k]);
        }
        const float x = acc[s] * derivative.x, y = acc[s + 1] * derivative.y;
        if constexpr (kBackward) {
          sums[column] += x;
          sums[column + 1] += y;
        }
        out.pairs[k] = pack(x, y);
      }
      store_unit(static_cast<Bf16*>(task.backward.gradient) + at(rows[i % kHalves], i), out,
                 valid[i % kHalves]);
    }
  }

  __device__ void finish_forward(const int (&rows)[kHalves], const bool (&valid)[kHalves],
                                 Unit (&others)[kGather ? kUnits : 1]) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      float values[8];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int s = first_sum(i, k);
        float x = acc[s], y = acc[s + 1];
        if constexpr (kIsForward<kKind>) {
          const float2 b =
              *reinterpret_cast<const float2*>(bias + 32 * (i / kHalves) + 8 * q + 2 * k);
          x += b.x;
          y += b.y;
        }
        if constexpr (kLoads) {
          const float2 more = unpack(loaded[i].pairs[k]);
          x += more.x;
          y += more.y;
        }
        if constexpr (kGather) {
          const float2 more = unpack(others[i].pairs[k]);
          x += more.x;
          y += more.y;
        }
        values[2 * k] = x;
        values[2 * k + 1] = y;
      }
      const int64_t place = at(rows[i % kHalves], i);
      const bool there = valid[i % kHalves];
      if constexpr (kKind == Kind::kBias) {
        store_unit(static_cast<Bf16*>(task.forward.out) + place, pack(values), there);
      } else if constexpr (kIsForward<kKind>) {
        if constexpr (kKept == Kept::kPre)
          store_unit(static_cast<Bf16*>(task.forward.pre) + place, pack(values), there);
        uint2 slopes{};
        const Unit out = fast_gelus<kKept == Kept::kSlope>(values, slopes);
        store_unit(static_cast<Bf16*>(task.forward.out) + place, out, there);
        if (kKept == Kept::kSlope && there)
          *reinterpret_cast<uint2*>(task.forward.slope + place) = slopes;
      } else {
        store_unit(static_cast<Bf16*>(task.sum.out) + place, pack(values), there);
      }
    }
  }

  __device__ void do_tile(int tile, Ring<Own::kStages>& ring, const uint8_t* weight,
                          const uint8_t* pieces) {
    int rows[kHalves];
    bool valid[kHalves];
    int targets[kHalves];
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      rows[half] = row_of(tile, half);
      valid[half] = rows[half] < task.rows;
      targets[half] = kGather ? next_target[half] : 0;
    }
    Unit others[kGather ? kUnits : 1];
    if constexpr (kLoads) {
#pragma unroll
      for (int i = 0; i < kUnits; ++i) {
        const int half = i % kHalves;
        const bool by_source = kKind == Kind::kGeluGather;
        const void* table = kBackward             ? task.backward.pre
                            : kKind == Kind::kSum ? task.sum.addend
                            : by_source           ? task.forward.at_source
                                                  : task.forward.addend;
        const int row = by_source ? next_source[half] : rows[half];
        loaded[i] = load_unit(static_cast<const Bf16*>(table) + at(row, i),
                              valid[half] && (kKind != Kind::kSum || table != nullptr));
      }
    }
    if constexpr (kFromSlope) {
#pragma unroll
      for (int i = 0; i < kUnits; ++i)
        slopes[i] = load_slopes(task.backward.slope + at(rows[i % kHalves], i), valid[i % kHalves]);
    }
    if constexpr (kGather) ask_for_ends(tile + share.step);

    int before = -1;
    hopper::pin(acc);
    hopper::fence_products();
#pragma unroll
    for (int k = 0; k < kMaxPieces; ++k) {
      if (k < share.pieces) {
        ring.full[place.stage].wait(place.phase);
        hopper::fence_products();
        const uint64_t a = hopper::operand(pieces + place.stage * kPieceBytes);
        const uint8_t* piece = weight + k * kWeightPieceBytes;
        const uint64_t b = kWeightColumns ? hopper::column_operand(piece) : hopper::operand(piece);
#pragma unroll
        for (int i = 0; i < kPieceDepth / 16; ++i)
          hopper::multiply<kWeightColumns>(acc, a + 2 * i, b + (kWeightColumns ? 128 : 2) * i,
                                           k + i > 0);
        hopper::commit_products();
      }
      // Work for the time that the products take.
      if (kFromPre && k < kUnits) differentiate(k, rows[k % kHalves], valid[k % kHalves]);
      if (kGather && k < kUnits) {
        const void* table = kKind == Kind::kSum ? task.sum.at_target : task.forward.at_target;
        others[k] = load_unit(static_cast<const Bf16*>(table) + at(targets[k % kHalves], k),
                              valid[k % kHalves] && (kKind != Kind::kSum || table != nullptr));
      }
      if (k < share.pieces) {
        if (before >= 0) {
          hopper::wait_products<1>();
          if (lane == 0) ring.empty[before].arrive();
        }
        before = place.stage;
        place.advance();
      }
    }
    hopper::wait_products<0>();
    hopper::pin(acc);
    if (lane == 0) ring.empty[before].arrive();

    if constexpr (kBackward) {
      finish_backward(rows, valid);
    } else {
      finish_forward(rows, valid, others);
    }
  }

  // Sums over the rows of a warp, to `to` (128 columns).
  __device__ void write_sums(float* to) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if constexpr (kBackward) {
#pragma unroll
        for (int offset = 4; offset < kWarpSize; offset *= 2)
          sums[i] += __shfl_xor_sync(~0u, sums[i], offset);
        if (lane < 4) to[32 * (i / 8) + 8 * q + i % 8] = sums[i];
      }
    }
  }
};

}  // namespace

}  // namespace aifs::model::cuda
