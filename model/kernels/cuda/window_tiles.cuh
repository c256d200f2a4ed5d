// SPDX-License-Identifier: Apache-2.0
// What the three kernels of window_attention.cu share: how rows reach a block.
//
// A block owns 64 rows of a head for each of its warpgroups, which keep them in registers, and
// walks over the rows that these see, tile by tile: a warp copies tiles to a ring of stages, and
// all warpgroups use them. Own rows are queries, tiles keys and values; or own rows are keys and
// values, tiles queries with what belongs to them. The window is the same on both sides, so who
// sees whom is too. When a block has finished it takes other rows, whose copies are under way by
// then.
#pragma once

#include "model/kernels/cuda/hopper.cuh"
#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

using Bf16 = __nv_bfloat16;
using hopper::Barrier;

constexpr int kHeadWidth = 64, kRowBytes = 2 * kHeadWidth;
constexpr int kGroupRows = 64, kWarpsPerGroup = 4, kGroupThreads = kWarpsPerGroup * kWarpSize;
constexpr int kSharedRoom = 225 * 1024;

// Tensors of own rows and of tiles, each one box of rows of a head.
struct Maps {
  CUtensorMap own[3], tiles[2];
};

// Rows of a head, as written.
struct Output {
  Bf16* data = nullptr;
  int64_t row_stride = 0, batch_stride = 0;
};

struct Task {
  int rows = 0, heads = 1, batches = 1, window = 0;
  int padded = 0;             // rows of a head in log_sums and deltas
  float scale = 0;            // of scores
  float* log_sums = nullptr;  // (batches, heads, padded)
  float* deltas = nullptr;    // likewise
  Output outputs[2];
};

// kGroups warpgroups, tiles of kTile rows, kOwn tensors of own rows; kVectors: log_sums and deltas
// come with the tiles.
template <int kGroups_, int kTile_, int kOwn_, bool kVectors_>
struct Shape {
  static constexpr int kGroups = kGroups_, kTile = kTile_, kOwn = kOwn_;
  static constexpr bool kVectors = kVectors_;
  static constexpr int kOwnRows = kGroups * kGroupRows, kOwnBytes = kOwnRows * kRowBytes;
  static constexpr int kTileBytes = kTile * kRowBytes, kVectorBytes = kTile * 4;
  static constexpr int kStageBytes = 2 * kTileBytes + (kVectors ? 2 * kVectorBytes : 0);
  static constexpr int kFits = (kSharedRoom - kOwn * kOwnBytes) / kStageBytes;
  static constexpr int kStages = kFits < 10 ? kFits : 10;
  static constexpr int kConsumers = kGroups * kGroupThreads;
  static constexpr int kThreads = kConsumers + kGroupThreads;  // registers go by fours
  static constexpr int kRegisters = kGroups == 2 ? 240 : 160;
  static_assert(kTileBytes % 1024 == 0 && kStages >= 2);
};

template <class S>
struct Signals {
  Barrier full[S::kStages], empty[S::kStages], own_full, own_empty;

  __device__ void init() {
    for (int s = 0; s < S::kStages; ++s) {
      full[s].init(1);
      empty[s].init(S::kGroups * kWarpsPerGroup);
    }
    own_full.init(1);
    own_empty.init(S::kGroups * kWarpsPerGroup);
    hopper::publish_barriers();
  }
};

// What a block has in shared memory.
template <class S>
struct Room {
  uint8_t *own, *stages;
  float* vectors;
  Signals<S>& signals;

  static constexpr int kBytes =
      S::kOwn * S::kOwnBytes + S::kStages * S::kStageBytes + sizeof(Signals<S>) + 1024;

  __device__ explicit Room(uint8_t* start)
      : own(start),
        stages(start + S::kOwn * S::kOwnBytes),
        vectors(reinterpret_cast<float*>(stages + S::kStages * 2 * S::kTileBytes)),
        signals(*reinterpret_cast<Signals<S>*>(stages + S::kStages * S::kStageBytes)) {}

  __device__ uint8_t* tile(int stage, int which) const {
    return stages + (2 * stage + which) * S::kTileBytes;
  }
  __device__ float* vector(int stage, int which) const {
    return vectors + (2 * stage + which) * S::kTile;
  }
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

// The own rows of a block's turn, and the tiles of what they see.
struct Span {
  int head, batch, row, begin, tiles;
};

template <class S>
__host__ __device__ inline int turns_of(const Task& task) {
  return (task.rows + S::kOwnRows - 1) / S::kOwnRows * task.heads * task.batches;
}

template <class S>
__device__ Span span_of(const Task& task, int turn) {
  const int blocks = (task.rows + S::kOwnRows - 1) / S::kOwnRows;
  Span span;
  span.head = turn % task.heads;
  turn /= task.heads;
  span.row = turn % blocks * S::kOwnRows;
  span.batch = turn / blocks;
  // Vectors are copied from multiples of four.
  span.begin = max(0, span.row - task.window) / 4 * 4;
  const int end = min(task.rows, span.row + S::kOwnRows + task.window);
  span.tiles = (end - span.begin + S::kTile - 1) / S::kTile;
  return span;
}

template <class S>
__device__ void feed(const Maps& maps, const Task& task, const Room<S>& room) {
  Signals<S>& signals = room.signals;
  Place<S::kStages> place;
  uint32_t own_phase = 1;  // all is free at the start
  place.phase = 1;
  const int turns = turns_of<S>(task);
  for (int turn = static_cast<int>(blockIdx.x); turn < turns; turn += static_cast<int>(gridDim.x)) {
    const Span span = span_of<S>(task, turn);
    const int column = span.head * kHeadWidth;
    signals.own_empty.wait(own_phase);
    own_phase ^= 1;
    signals.own_full.arrive_and_expect(S::kOwn * S::kOwnBytes);
    for (int i = 0; i < S::kOwn; ++i) {
      for (int g = 0; g < S::kGroups; ++g) {
        hopper::copy_box3(room.own + (i * S::kGroups + g) * kGroupRows * kRowBytes, maps.own[i],
                          signals.own_full, column, span.row + g * kGroupRows, span.batch);
      }
    }
    const int64_t vectors = int64_t{span.batch * task.heads + span.head} * task.padded;
    for (int t = 0; t < span.tiles; ++t) {
      const int row = span.begin + t * S::kTile, stage = place.stage;
      Barrier& full = signals.full[stage];
      signals.empty[stage].wait(place.phase);
      full.arrive_and_expect(S::kStageBytes);
      hopper::copy_box3(room.tile(stage, 0), maps.tiles[0], full, column, row, span.batch);
      hopper::copy_box3(room.tile(stage, 1), maps.tiles[1], full, column, row, span.batch);
      if constexpr (S::kVectors) {
        hopper::copy_bytes(room.vector(stage, 0), task.log_sums + vectors + row, full,
                           S::kVectorBytes);
        hopper::copy_bytes(room.vector(stage, 1), task.deltas + vectors + row, full,
                           S::kVectorBytes);
      }
      place.advance();
    }
  }
}

__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline uint32_t pack(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ inline float2 unpack(uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

// Sums of a product as the left operand of the next: as many columns as that is deep.
template <int kFloats>
__device__ void pack_operand(uint32_t (&to)[kFloats / 8][4], const float (&from)[kFloats]) {
#pragma unroll
  for (int i = 0; i < kFloats / 2; ++i)
    to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}

// Word k of lane q of each four goes to lane k as word q.
__device__ inline void transpose_words(uint32_t (&w)[4], int q) {
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const bool upper = (q & bit) != 0;
      const uint32_t come = __shfl_xor_sync(~0u, upper ? w[i] : w[i + bit], bit);
      (upper ? w[i] : w[i + bit]) = come;
    }
  }
}

// Which sums of a product with a tile belong to rows that see each other.
struct Seen {
  uint32_t bits[2];
  __device__ bool operator[](int i) const {
    return (bits[i / 2 % 2] >> (i / 4 * 2 + i % 2) & 1) != 0;
  }
};

// One warpgroup's work: what does not depend on the kernel.
template <class S>
struct Worker {
  const Task& task;
  const Room<S>& room;
  int group, warp, lane, q;
  uint32_t stages;  // as operands
  Place<S::kStages> place;
  uint32_t own_phase = 0;
  // Of the turn: own rows of this lane are `row` and `row` + 8; of span.tiles, those in [first,
  // last) are seen by a row of the warpgroup.
  Span span;
  int row, first, last;
  int lowest[2], reach[2];  // a row sees rows lowest ... lowest + reach

  __device__ Worker(const Task& task_, const Room<S>& room_, int warp_)
      : task(task_),
        room(room_),
        group(warp_ / kWarpsPerGroup),
        warp(warp_ % kWarpsPerGroup),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        q(lane % 4),
        stages(hopper::operand(room_.stages)) {}

  __device__ void begin_turn(int turn) {
    span = span_of<S>(task, turn);
    const int group_row = span.row + group * kGroupRows;
    row = group_row + 16 * warp + lane / 4;
    const int before = max(0, group_row - task.window - span.begin);
    const int behind = group_row + kGroupRows + task.window - span.begin;
    first = min(before / S::kTile, span.tiles);
    last = min((behind + S::kTile - 1) / S::kTile, span.tiles);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = min(row + 8 * h, task.rows - 1);
      lowest[h] = r - task.window;
      reach[h] = min(r + task.window, task.rows - 1) - lowest[h];
    }
    for (int t = 0; t < first; ++t)
      skip_tile();
  }
  __device__ void end_turn() {
    for (int t = max(first, last); t < span.tiles; ++t)
      skip_tile();
  }

  __device__ void await_tile() {
    room.signals.full[place.stage].wait(place.phase);
  }
  __device__ void release(int stage) {
    if constexpr (S::kVectors) __syncwarp();  // all lanes have read them
    if (lane == 0) room.signals.empty[stage].arrive();
  }
  __device__ void skip_tile() {
    await_tile();
    release(place.stage);
    place.advance();
  }

  __device__ uint32_t tile(int stage, int which) const {
    return stages + static_cast<uint32_t>((2 * stage + which) * (S::kTileBytes / 16));
  }
  __device__ int row_of(int t) const {
    return span.begin + t * S::kTile;
  }
  // True if a row of the warpgroup does not see all of the tile.
  __device__ bool is_partial(int t) const {
    const int from = row_of(t), to = from + S::kTile - 1, group_row = span.row + group * kGroupRows;
    return from < group_row + kGroupRows - 1 - task.window || to > group_row + task.window ||
           to >= task.rows;
  }
  __device__ Seen seen_of(int t) const {
    // How many of this lane's columns, two of every eight, are before so many of the tile's.
    const auto before = [&](int columns) {
      const int c = min(max(columns - 2 * q, 0), S::kTile);
      return c / 8 * 2 + min(c % 8, 2);
    };
    Seen seen;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int from = lowest[h] - row_of(t);
      seen.bits[h] = (1u << before(from + reach[h] + 1)) - (1u << before(from));
    }
    return seen;
  }

  // Waits for own rows, takes those of the warpgroup of each tensor, and gives the room back.
  __device__ void take_own(uint32_t (&rows)[S::kOwn][4][4]) {
    room.signals.own_full.wait(own_phase);
    own_phase ^= 1;
    const int r = 16 * warp + lane % 16;
#pragma unroll
    for (int i = 0; i < S::kOwn; ++i) {
      const uint8_t* from = room.own + ((i * S::kGroups + group) * kGroupRows + r) * kRowBytes;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        hopper::load_matrices(rows[i][k], from + (((2 * k + lane / 16) ^ (r % 8)) * 16));
    }
    __syncwarp();
    if (lane == 0) room.signals.own_empty.arrive();
  }

  // d (64 x kTile) = own rows times those of a tile.
  template <int kFloats>
  __device__ void multiply_tile(float (&d)[kFloats], const uint32_t (&own)[4][4], uint32_t of) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      hopper::multiply<false>(d, own[k], of + 2 * k, k > 0);
    hopper::commit_products();
  }
  // d (64 x 64) += weights times a tile.
  __device__ void add_tile(float (&d)[32], const uint32_t (&weights)[S::kTile / 16][4],
                           uint32_t of) {
#pragma unroll
    for (int k = 0; k < S::kTile / 16; ++k)
      hopper::multiply<true>(d, weights[k], of + 128 * k, 1);
    hopper::commit_products();
  }

  // Writes own rows of a result, each times its factor.
  __device__ void store(const Output& to, const float (&d)[32], const float (&factor)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int r = row + 8 * h;
      Bf16* at = to.data + span.batch * to.batch_stride + r * to.row_stride +
                 span.head * kHeadWidth + 8 * q;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        uint32_t w[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int i = 4 * (4 * part + k) + 2 * h;
          w[k] = pack(d[i] * factor[h], d[i + 1] * factor[h]);
        }
        transpose_words(w, q);
        if (r < task.rows)
          *reinterpret_cast<uint4*>(at + 32 * part) = make_uint4(w[0], w[1], w[2], w[3]);
      }
    }
  }
  __device__ float* vector_of_head(float* vectors) const {
    return vectors + int64_t{span.batch * task.heads + span.head} * task.padded;
  }
};

__device__ inline float sum_of_four(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

}  // namespace

}  // namespace aifs::model::cuda
