// SPDX-License-Identifier: Apache-2.0
// What the warps of deep_product.cuh share, and how those that finish tiles work.
#pragma once

#include "model/kernels/cuda/tall_tiles.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kDeepColumns = 256, kDeepGroups = 2, kDeepBlocks = 2, kDeepStages = 4;
constexpr int kMultipliers = kDeepGroups * kWarpsPerGroup, kFinishers = 3;  // warps
constexpr int kDeepThreads = (kMultipliers + kFinishers + 1) * kWarpSize;
constexpr int kClusterRows = kDeepBlocks * kDeepGroups * kTileRows;
constexpr int kBoxes = kDeepColumns / kBoxColumns;  // of a weight's piece
constexpr int kDeepWeightBytes = kBoxes * kPieceBytes;
constexpr int kStageBytes = kDeepWeightBytes + kDeepGroups * kPieceBytes;
constexpr int kTileBytes = kTileRows * kDeepColumns * 2, kUnitColumns = 8;
constexpr int kDeepSharedBytes = kDeepStages * kStageBytes + kTileBytes + 1024;

// Barriers of a block: of its stages, and of a tile of each warpgroup that is handed over.
struct DeepSignals {
  Ring<kDeepStages> ring;
  Barrier ready[kDeepGroups], finished[kDeepGroups];

  __device__ void init() {
    for (int s = 0; s < kDeepStages; ++s) {
      ring.full[s].init(1);
      ring.empty[s].init(kDeepBlocks * kMultipliers);
    }
    for (int group = 0; group < kDeepGroups; ++group) {
      ready[group].init(kWarpsPerGroup);
      finished[group].init(kFinishers);
    }
    hopper::publish_barriers();
  }
};

// Describes what a block does: `turns` tiles for each warpgroup, `steps` for each of them, of which
// the first `own_steps` read x.
struct Round {
  int column, width, team, teams, rank, turns, steps, own_steps, lag;
  __device__ explicit Round(const Task& task) {
    const int cluster = static_cast<int>(blockIdx.x) / kDeepBlocks;
    const int slices = (task.width + kDeepColumns - 1) / kDeepColumns;
    column = cluster % slices * kDeepColumns;
    width = task.width;
    team = cluster / slices;
    teams = static_cast<int>(gridDim.x) / kDeepBlocks / slices;
    rank = static_cast<int>(blockIdx.x) % kDeepBlocks;
    const int all = (task.rows + kClusterRows - 1) / kClusterRows;
    turns = (all - team + teams - 1) / teams;
    steps = (task.depth + kPieceDepth - 1) / kPieceDepth;
    own_steps = (task.own_depth + kPieceDepth - 1) / kPieceDepth;
    lag = steps / 2;
  }
  __device__ int length() const { return turns * steps + lag; }
  __device__ int first_row(int turn, int group) const {
    return (((turn * teams + team) * kDeepBlocks + rank) * kDeepGroups + group) * kTileRows;
  }
};

// A tile handed over: rows of 256 columns in 16 bits, in units of 16 bytes.
__device__ inline uint8_t* unit_of_tile(uint8_t* tile, int row, int unit) {
  return tile + row * (kDeepColumns * 2) + (unit ^ (row % 8)) * 16;
}

// One warp's share of finishing tiles: every third row of each. A lane has eight columns.
template <Kind kKind>
struct Finisher {
  static constexpr int kRowsOfWarp = (kTileRows + kFinishers - 1) / kFinishers;
  static constexpr int kBatch = 4;  // rows that are asked for while as many are finished
  static constexpr bool kForward = kIsForward<kKind>, kBackward = kIsBackward<kKind>;
  static constexpr bool kFromSlope = kKind == Kind::kBackwardSlope;
  static constexpr bool kBySource = kKind == Kind::kGeluGather;
  static constexpr bool kGathers = kBySource || kKind == Kind::kSum;
  static constexpr bool kReads = kKind > Kind::kGelu && !kFromSlope;  // rows of 16 bits

  struct Operands {  // of a row
    Unit row, at_target;
    uint2 slopes;
  };

  const Task& task;
  const Round& round;
  DeepSignals& signals;
  uint8_t* tile;
  int warp, lane, column;
  int column_read;  // the lane's, or another's where it has none
  Table rows, at_targets;
  float bias[kForward ? kUnitColumns : 1], sums[kBackward ? kUnitColumns : 1];
  // Ends of the edge of this warp's row number `lane`.
  int next_target = 0, next_source = 0, target = 0, source = 0;

  __device__ Finisher(const Task& task_, const Round& round_, DeepSignals& signals_, uint8_t* tile_,
                      int warp_)
      : task(task_),
        round(round_),
        signals(signals_),
        tile(tile_),
        warp(warp_),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        column(round_.column + kUnitColumns * lane),
        column_read(column < task_.width ? column : 0) {
    const void* table = kBackward             ? task.backward.pre
                        : kKind == Kind::kSum ? task.sum.addend
                        : kBySource           ? task.forward.at_source
                                              : task.forward.addend;
    const void* gathered = kKind == Kind::kSum ? task.sum.at_target : task.forward.at_target;
    if constexpr (kReads) rows = Table(table, task.sum.out, column_read, task.width);
    if constexpr (kGathers) at_targets = Table(gathered, task.sum.out, column_read, task.width);
#pragma unroll
    for (float& sum : sums)
      sum = 0.0f;
#pragma unroll
    for (int i = 0; i < (kForward ? kUnitColumns : 0); ++i)
      bias[i] = task.forward.bias[column_read + i];
  }

  __device__ int row_of(int number) const {
    return number * kFinishers + warp;
  }

  __device__ void ask_for_ends(int first_row) {
    if constexpr (kGathers) {
      const int row = first_row + row_of(lane);
      const int32_t* to = kKind == Kind::kSum ? task.sum.target : task.forward.ends.target;
      next_target = row < task.rows && to != nullptr ? to[row] : 0;
      if constexpr (kBySource) next_source = row < task.rows ? task.forward.ends.source[row] : 0;
    }
  }

  __device__ int64_t place(int row, int at) const {
    const uint64_t begin = uint64_t{static_cast<uint32_t>(row)} * static_cast<uint32_t>(task.width);
    return static_cast<int64_t>(begin) + at;
  }

  __device__ void ask(Operands& o, int first_row, int number) const {
    const int row = min(first_row + row_of(number), task.rows - 1);
    if constexpr (kReads) o.row = rows.load(kBySource ? __shfl_sync(~0u, source, number) : row);
    if constexpr (kGathers) o.at_target = at_targets.load(__shfl_sync(~0u, target, number));
    if constexpr (kFromSlope) o.slopes = load_slopes(task.backward.slope + place(row, column_read));
  }

  __device__ void finish_gradient(const Operands& o, const float2 (&product)[4], int64_t at,
                                  bool there) {
    Unit gradient, activated;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float2 derivative;
      if constexpr (kFromSlope) {
        const uint32_t codes = k < 2 ? o.slopes.x : o.slopes.y;
        derivative = {decode_slope(codes, 2 * (k % 2)), decode_slope(codes, 2 * (k % 2) + 1)};
      } else {
        const float2 pre = unpack(o.row.pairs[k]);
        const GeluPairs<1> gelu({0.5f * pre.x, 0.5f * pre.y});
        activated.pairs[k] = pack(gelu.value[0].x, gelu.value[0].y);
        derivative = gelu.derivative(0);
      }
      const float x = product[k].x * derivative.x, y = product[k].y * derivative.y;
      sums[2 * k] += x;
      sums[2 * k + 1] += y;
      gradient.pairs[k] = pack(x, y);
    }
    store_unit(static_cast<Bf16*>(task.backward.gradient) + at, gradient, there);
    if constexpr (!kFromSlope) {
      store_unit(static_cast<Bf16*>(task.backward.out) + at, activated,
                 there && task.backward.out != nullptr);
    }
  }

  __device__ void finish_sum(const Operands& o, const float2 (&product)[4], int64_t at,
                             bool there) {
    Unit sum, out;
    uint32_t codes[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float x = product[k].x, y = product[k].y;
      const auto add = [&](const float2& more) {
        x += more.x;
        y += more.y;
      };
      if constexpr (kForward) add({bias[2 * k], bias[2 * k + 1]});
      if constexpr (kReads) add(rows.pair(o.row, k));
      if constexpr (kGathers) add(at_targets.pair(o.at_target, k));
      sum.pairs[k] = pack(x, y);
      if constexpr (kForward) {
        const GeluPairs<1> gelu({0.5f * x, 0.5f * y});
        out.pairs[k] = pack(gelu.value[0].x, gelu.value[0].y);
        codes[k] = gelu.slopes(0);
      }
    }
    if constexpr (kForward) {
      store_unit(static_cast<Bf16*>(task.forward.out) + at, out, there);
      store_unit(static_cast<Bf16*>(task.forward.pre) + at, sum,
                 there && task.forward.pre != nullptr);
      store_slopes(task.forward.slope + at, lowest_bytes(codes),
                   there && task.forward.slope != nullptr);
    } else {
      store_unit(static_cast<Bf16*>(task.sum.out) + at, sum, there);
    }
  }

  __device__ void finish(const Operands& o, int first_row, int number) {
    const int row = row_of(number);
    const bool inside = (number + 1) * kFinishers <= kTileRows || row < kTileRows;
    const bool there = inside && first_row + row < task.rows && column < task.width;
    const uint4 words = hopper::load_shared(unit_of_tile(tile, row % kTileRows, lane));
    const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
    float2 product[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      product[k] = unpack(inside ? pairs[k] : 0);
    const int64_t at = place(first_row + row, column);
    if constexpr (kBackward) {
      finish_gradient(o, product, at, there);
    } else {
      finish_sum(o, product, at, there);
    }
  }

  __device__ void do_tile(int turn, int group) {
    const int first_row = round.first_row(turn, group);
    target = next_target;
    source = next_source;
    ask_for_ends(round.first_row(turn + group, 1 - group));
    Operands of_rows[2][kBatch];
    const auto with_rows = [&](int batch, auto&& call) {
#pragma unroll
      for (int i = batch * kBatch; i < min((batch + 1) * kBatch, kRowsOfWarp); ++i)
        call(of_rows[batch % 2][i % kBatch], i);
    };
    const auto ask_for = [&](Operands& o, int number) { ask(o, first_row, number); };
    with_rows(0, ask_for);
    signals.ready[group].wait(static_cast<uint32_t>(turn & 1));
#pragma unroll
    for (int batch = 0; batch * kBatch < kRowsOfWarp; ++batch) {
      with_rows(batch + 1, ask_for);
      with_rows(batch, [&](const Operands& o, int number) { finish(o, first_row, number); });
    }
    __syncwarp();
    if (lane == 0) signals.finished[group].arrive();
  }

  __device__ void run() {
    ask_for_ends(round.first_row(0, 0));
    for (int turn = 0; turn < round.turns; ++turn) {
#pragma unroll 1
      for (int group = 0; group < kDeepGroups; ++group)
        do_tile(turn, group);
    }
  }

  __device__ static void wait_for_finishers() {
    asm volatile("bar.sync 1, %0;" ::"n"(kFinishers * kWarpSize) : "memory");
  }

  // Column sums of the block, added up in the order of the warps, with room for those of each.
  __device__ void write_sums(float* parts) {
    wait_for_finishers();  // the last tile has been read
#pragma unroll
    for (int i = 0; i < kUnitColumns; ++i)
      parts[warp * kDeepColumns + lane * kUnitColumns + i] = sums[i];
    wait_for_finishers();
    const int columns = min(kDeepColumns, task.width - round.column);
    float* to = task.backward.scratch + place(round.team * kDeepBlocks + round.rank, round.column);
    for (int c = warp * kWarpSize + lane; c < columns; c += kFinishers * kWarpSize) {
      float sum = 0.0f;
      for (int part = 0; part < kFinishers; ++part)
        sum += parts[part * kDeepColumns + c];
      to[c] = sum;
    }
  }
};

}  // namespace

}  // namespace aifs::model::cuda
