// SPDX-License-Identifier: Apache-2.0
// How the blocks of tall_product.cu work where the weight is at most 512 deep; deep_product.cuh
// says how they do beyond.
//
// A block keeps 128 columns of the product, and so 128 rows of the weight, in shared memory for its
// whole life, and walks over tiles of 64 rows. Three warpgroups take tiles in turn. A warp copies
// the tiles, one after another, to a ring of pieces 64 deep. A warpgroup asks for its products when
// the one before has asked for all of its own: so one alone multiplies, at full speed, while the
// others finish their tiles. Without turns they could not share the ring: one of them a phase ahead
// would pass the wait for a piece of an earlier tile.
//
// The epilogue works from registers. A lane of a product holds two neighbouring columns of every
// eighth. The weight lies in shared memory with its columns in such an order (reorder_columns())
// that these are eight neighbours of the matrix, 16 bytes.
//
// A card spends most of its power here, so instructions count even where they are hidden.
#pragma once

#include "model/kernels/cuda/fast_gelu.cuh"
#include "model/kernels/cuda/hopper.cuh"
#include "model/kernels/cuda/product_operands.h"
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

using Bf16 = __nv_bfloat16;
using hopper::Barrier;

constexpr int kTileRows = 64, kColumns = 128, kPieceDepth = 64, kMaxPieces = 8, kBoxColumns = 64;
constexpr int kOrdered = 32;  // columns of a weight that are put in order together
constexpr int kWarpsPerGroup = 4;
constexpr int kPieceBytes = kTileRows * kPieceDepth * 2;
constexpr int kWeightPieceBytes = kColumns * kPieceDepth * 2;

// kSum adds rows; kSumGather those and rows gathered at targets, either of which may be missing.
enum class Kind {
  kBias,
  kGelu,
  kGeluAdd,
  kGeluGather,
  kBackward,
  kBackwardSlope,
  kSum,
  kSumGather
};
template <Kind kKind>
constexpr bool kIsForward = kKind <= Kind::kGeluGather;
template <Kind kKind>
constexpr bool kIsBackward = kKind == Kind::kBackward || kKind == Kind::kBackwardSlope;
template <Kind kKind>
constexpr bool kIsSum = kKind >= Kind::kSum;
enum class Kept { kNothing, kPre, kSlope };  // of a forward kind, beside its GELUs

constexpr int kGroups = 3, kStages = 12;
constexpr int kConsumers = kGroups * kWarpsPerGroup * kWarpSize;
constexpr int kTallThreads = kConsumers + kWarpsPerGroup * kWarpSize;  // registers go by fours
constexpr int kRegistersOfConsumer = 160, kRegistersOfCopier = 24;
static_assert(kConsumers * kRegistersOfConsumer +
                  (kTallThreads - kConsumers) * kRegistersOfCopier <=
              65536);
static_assert(kMaxPieces <= kStages);  // a tile's pieces are in the ring once

struct Task {
  int rows, width, depth, own_depth;  // the latter that of x alone
  ProductGelu forward;
  ProductGeluBackward backward;
  ProductSum sum;
};

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

// Loads are asked for where they stand in the text, and never on a condition: they would be waited
// for there. Stores on a predicate: rows are finished side by side, which branches would prevent.
__device__ inline Unit load_unit(const Bf16* from) {
  Unit u;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(u.pairs[0]), "=r"(u.pairs[1]), "=r"(u.pairs[2]), "=r"(u.pairs[3])
               : "l"(from));
  return u;
}
__device__ inline uint2 load_slopes(const uint8_t* from) {
  uint2 u;
  asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(u.x), "=r"(u.y) : "l"(from));
  return u;
}
__device__ inline void store_unit(Bf16* to, const Unit& u, bool wanted) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
      "@p st.global.v4.u32 [%0], {%1,%2,%3,%4};\n}" ::"l"(to),
      "r"(u.pairs[0]), "r"(u.pairs[1]), "r"(u.pairs[2]), "r"(u.pairs[3]),
      "r"(static_cast<int>(wanted)));
}
__device__ inline void store_slopes(uint8_t* to, uint2 slopes, bool wanted) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n@p st.global.v2.u32 [%0], {%1,%2};\n}" ::"l"(to),
      "r"(slopes.x), "r"(slopes.y), "r"(static_cast<int>(wanted)));
}
// Takes both halves of four words.
__device__ inline uint2 lowest_bytes(const uint32_t (&words)[4]) {
  return make_uint2(__byte_perm(words[0], words[1], 0x6420),
                    __byte_perm(words[2], words[3], 0x6420));
}

// Rows of a table from the lane's first column on. One that is not there is read all the same, from
// where something is (results to be, so that compute-sanitizer's initcheck complains), and counts
// as zero.
struct Table {
  const Bf16* first = nullptr;
  uint32_t stride = 0, upper = 0, lower = 0;  // to mask one of a pair, to shift the other

  Table() = default;
  __device__ Table(const void* table, const void* otherwise, int column, int width)
      : first(static_cast<const Bf16*>(table != nullptr ? table : otherwise) + column),
        stride(table != nullptr ? static_cast<uint32_t>(width) : 0),
        upper(table != nullptr ? 0xffff0000u : 0),
        lower(table != nullptr ? 1u << 16 : 0) {}
  __device__ Unit load(int row, int further = 0) const {
    return load_unit(first + uint64_t{static_cast<uint32_t>(row)} * stride + further);
  }
  __device__ float2 pair(const Unit& unit, int k) const {
    return make_float2(__uint_as_float(unit.pairs[k] * lower),
                       __uint_as_float(unit.pairs[k] & upper));
  }
};

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
  __device__ void skip(int steps) {
    stage += steps;
    while (stage >= kStages) {
      stage -= kStages;
      phase ^= 1;
    }
  }
};

// Describes what a block has in shared memory behind its weight and its pieces.
struct Signals {
  Ring<kStages> ring;
  Barrier weight, turns[kGroups];  // of each warpgroup: it may ask for its products
  float bias[kColumns];            // times kScale

  __device__ void init() {
    for (int s = 0; s < kStages; ++s) {
      ring.full[s].init(1);
      ring.empty[s].init(kWarpsPerGroup);
    }
    weight.init(1);
    for (Barrier& turn : turns)
      turn.init(kWarpsPerGroup);
    hopper::publish_barriers();
  }
};
constexpr int kSharedBytes =
    kMaxPieces * kWeightPieceBytes + kStages * kPieceBytes + sizeof(Signals) + 1024;

// Whose tiles are whose: those of a block are first, first + step, ...; its warpgroups take them in
// turn.
struct Share {
  int column, first, step, tiles, pieces;
  __device__ explicit Share(const Task& task) {
    const int slices = task.width / kColumns, block = static_cast<int>(blockIdx.x);
    column = block % slices * kColumns;
    first = block / slices;
    step = static_cast<int>(gridDim.x) / slices;
    tiles = (task.rows + kTileRows - 1) / kTileRows;
    pieces = (task.depth + kPieceDepth - 1) / kPieceDepth;
  }
};

__device__ inline void feed(const CUtensorMap& x, Ring<kStages>& ring, uint8_t* pieces,
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
  static constexpr int kHalves = 2, kUnits = 4 * kHalves;  // of a warp's rows, in units
  static_assert(kUnits == kMaxPieces);                     // one beside the products of each piece
  static constexpr bool kForward = kIsForward<kKind>, kBackward = kIsBackward<kKind>;
  static constexpr bool kFromPre = kKind == Kind::kBackward;
  static constexpr bool kFromSlope = kKind == Kind::kBackwardSlope;
  static constexpr bool kBySource = kKind == Kind::kGeluGather;
  static constexpr bool kGathers = kBySource || kKind == Kind::kSumGather;
  static constexpr bool kReads = kKind > Kind::kGelu && !kFromSlope;  // rows of 16 bits
  // GELUs are computed of halves of values, which come at no cost where no values are kept.
  static constexpr float kScale = kForward && kKind != Kind::kBias && kKept != Kept::kPre ? 0.5 : 1;

  const Task& task;
  const Share& share;
  Signals& signals;
  uint32_t weight, first_piece;  // as operands
  int group, warp, lane, q;
  uint32_t turn;
  Place<kStages> place;
  float acc[64];
  Table read, gathered;
  // Unit i: row half i % kHalves, columns 32 (i / kHalves) + 8 q ...
  Unit loaded[kReads ? kUnits : 1];
  uint2 slopes[kFromSlope ? kUnits : 1];
  float sums[kBackward ? 32 : 1];
  int next_target[kHalves], next_source[kHalves];

  __device__ Worker(const Task& task_, const Share& share_, Signals& signals_,
                    const uint8_t* weight_, const uint8_t* pieces_, int warp_)
      : task(task_),
        share(share_),
        signals(signals_),
        weight(kForward ? hopper::operand(weight_) : hopper::column_operand(weight_)),
        first_piece(hopper::operand(pieces_)),
        group(warp_ / kWarpsPerGroup),
        warp(warp_ % kWarpsPerGroup),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        q(lane % 4),
        turn(group == 0 ? 1 : 0) {  // the first turn is there at the start
    place.skip(group * share.pieces);
    const int column = share.column + 8 * q;
    const void* table = kBackward       ? task.backward.pre
                        : kIsSum<kKind> ? task.sum.addend
                        : kBySource     ? task.forward.at_source
                                        : task.forward.addend;
    const void* targets = kIsSum<kKind> ? task.sum.at_target : task.forward.at_target;
    if constexpr (kReads) read = Table(table, task.sum.out, column, task.width);
    if constexpr (kGathers) gathered = Table(targets, task.sum.out, column, task.width);
#pragma unroll
    for (float& sum : sums)
      sum = 0.0f;
  }

  __device__ int row_of(int tile, int half) const {
    return tile * kTileRows + 16 * warp + lane / 4 + 8 * half;
  }
  __device__ static int further(int unit) {
    return 32 * (unit / kHalves);
  }
  __device__ int64_t at(int row, int unit) const {
    return int64_t{row} * task.width + (share.column + 8 * q) + further(unit);
  }

  // The ends of a tile's edges, asked for one tile ahead.
  __device__ void ask_for_ends(int tile) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const int row = min(row_of(tile, half), task.rows - 1);
      const int32_t* target = kIsSum<kKind> ? task.sum.target : task.forward.ends.target;
      next_target[half] = target[row];
      if constexpr (kBySource) next_source[half] = task.forward.ends.source[row];
    }
  }

  // Returns where the sums of a pair of columns of unit i are.
  __device__ static constexpr int first_sum(int unit, int pair) {
    return 4 * (4 * (unit / kHalves) + pair) + 2 * (unit % kHalves);
  }

  // The derivative at unit i of `loaded` replaces it; the GELU is stored.
  __device__ void differentiate(int i, int row) {
    float halves[8];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 pre = unpack(loaded[i].pairs[k]);
      halves[2 * k] = 0.5f * pre.x;
      halves[2 * k + 1] = 0.5f * pre.y;
    }
    const GeluPairs<4> gelu(halves);
    Unit value;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 derivative = gelu.derivative(k);
      value.pairs[k] = pack(gelu.value[k].x, gelu.value[k].y);
      loaded[i].pairs[k] = pack(derivative.x, derivative.y);
    }
    store_unit(static_cast<Bf16*>(task.backward.out) + at(row, i), value,
               row < task.rows && task.backward.out != nullptr);
  }

  __device__ void finish_backward(int tile) {
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
      const int row = row_of(tile, i % kHalves);
      store_unit(static_cast<Bf16*>(task.backward.gradient) + at(row, i), out, row < task.rows);
    }
  }

  // Eight values and what becomes of them, at `place` of the results.
  __device__ void finish_gelus(float (&values)[8], int64_t place, bool there) {
    if constexpr (kKept == Kept::kPre) {
      store_unit(static_cast<Bf16*>(task.forward.pre) + place, pack(values), there);
#pragma unroll
      for (float& value : values)
        value *= 0.5f;
    }
    const GeluPairs<4> gelu(values);
    Unit out;
    uint32_t codes[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      out.pairs[k] = pack(gelu.value[k].x, gelu.value[k].y);
      codes[k] = gelu.slopes(k);
    }
    store_unit(static_cast<Bf16*>(task.forward.out) + place, out, there);
    if constexpr (kKept == Kept::kSlope)
      store_slopes(task.forward.slope + place, lowest_bytes(codes), there);
  }

  __device__ void finish_forward(int tile, Unit (&others)[kGathers ? kUnits : 1]) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      float values[8];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int s = first_sum(i, k);
        float2 sum = make_float2(acc[s], acc[s + 1]);
        if constexpr (kForward) {
          const float2 b = hopper::load_pair(signals.bias + further(i) + 8 * q + 2 * k);
          sum = make_float2(fmaf(kScale, sum.x, b.x), fmaf(kScale, sum.y, b.y));
        }
        const auto add = [&](float2 more) {
          sum.x = fmaf(kScale, more.x, sum.x);
          sum.y = fmaf(kScale, more.y, sum.y);
        };
        if constexpr (kReads)
          add(kKind == Kind::kSumGather ? read.pair(loaded[i], k) : unpack(loaded[i].pairs[k]));
        if constexpr (kGathers)
          add(kKind == Kind::kSumGather ? gathered.pair(others[i], k) : unpack(others[i].pairs[k]));
        values[2 * k] = sum.x;
        values[2 * k + 1] = sum.y;
      }
      const int row = row_of(tile, i % kHalves);
      const int64_t place = at(row, i);
      const bool there = row < task.rows;
      if constexpr (kForward && kKind != Kind::kBias) {
        finish_gelus(values, place, there);
      } else {
        store_unit(static_cast<Bf16*>(kForward ? task.forward.out : task.sum.out) + place,
                   pack(values), there);
      }
    }
  }

  // The piece is free as far as this warp goes.
  __device__ void release(int stage) {
    if (lane == 0) signals.ring.empty[stage].arrive();
  }

  __device__ void do_tile(int tile) {
    int from[kHalves], targets[kHalves];  // where something is to be read
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      from[half] = kBySource ? next_source[half] : min(row_of(tile, half), task.rows - 1);
      targets[half] = kGathers ? next_target[half] : 0;
    }
    Unit others[kGathers ? kUnits : 1];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      if constexpr (kReads) loaded[i] = read.load(from[i % kHalves], further(i));
      if constexpr (kFromSlope)
        slopes[i] = load_slopes(task.backward.slope + at(from[i % kHalves], i));
    }
    if constexpr (kGathers) ask_for_ends(tile + kGroups * share.step);

    signals.turns[group].wait(turn);
    turn ^= 1;
    int before = -1;
    hopper::pin(acc);
    hopper::fence_products();
#pragma unroll
    for (int k = 0; k < kMaxPieces; ++k) {
      if (k < share.pieces) {
        signals.ring.full[place.stage].wait(place.phase);
        hopper::fence_products();
        const uint32_t a = first_piece + static_cast<uint32_t>(place.stage) * (kPieceBytes / 16);
        const uint32_t b = weight + k * (kWeightPieceBytes / 16);
#pragma unroll
        for (int i = 0; i < kPieceDepth / 16; ++i)
          hopper::multiply<!kForward>(acc, a + 2 * i, b + (kForward ? 2 : 128) * i, k + i > 0);
        hopper::commit_products();
        if (k + 1 == share.pieces && lane == 0) signals.turns[(group + 1) % kGroups].arrive();
      }
      // Work for the time that the products take.
      if constexpr (kFromPre) differentiate(k, row_of(tile, k % kHalves));
      if constexpr (kGathers) others[k] = gathered.load(targets[k % kHalves], further(k));
      if (k < share.pieces) {
        if (before >= 0) {
          hopper::wait_products<1>();
          release(before);
        }
        before = place.stage;
        place.advance();
      }
    }
    hopper::wait_products<0>();
    hopper::pin(acc);
    release(before);
    place.skip((kGroups - 1) * share.pieces);  // those of the others

    hopper::forget(tile);  // no registers during the products for what follows from it
    if constexpr (kBackward) {
      finish_backward(tile);
    } else {
      finish_forward(tile, others);
    }
  }

  __device__ void run() {
    const int first = share.first + group * share.step;
    if constexpr (kGathers) ask_for_ends(first);
    for (int tile = first; tile < share.tiles; tile += kGroups * share.step)
      do_tile(tile);
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
