// SPDX-License-Identifier: Apache-2.0
// Products whose weight is too deep to stay in shared memory, and those of two tensors side by
// side.
//
// Two warpgroups multiply, each tiles of 64 rows and 256 columns of its own; a warp copies; three
// finish tiles, in turn from one warpgroup and the other. What is copied comes in steps of 64 of
// the depth: a piece of the weight, which both warpgroups use, and one of the rows of each. All
// tiles of a block have the same columns, so that pieces of the weight come round and round in the
// same order, and a tile may begin at any of them: the second warpgroup begins half a round later
// than the first. So one multiplies while the other hands its tile over, in 16 bits, and half a
// round is left to finish it.
//
// Two blocks of a cluster have the same columns. Each copies half of a weight's piece to both.
#pragma once

#include "model/kernels/cuda/deep_finish.cuh"

namespace aifs::model::cuda {

namespace {

// The copying thread. The weight is (width, depth) or, kByColumns, (depth, width).
template <bool kByColumns>
__device__ void feed_deep(const CUtensorMap& x, const CUtensorMap& more, const CUtensorMap& w,
                          Ring<kDeepStages>& ring, uint8_t* stages, const Round& round) {
  Place<kDeepStages> place;
  place.phase = 1;  // all stages are free at the start
  int k = 0, turns[kDeepGroups] = {0, -1};
  for (int step = 0; step < round.length(); ++step) {
    if (k == round.steps) {
      k = 0;
      ++turns[0];
    }
    if (k == round.lag) ++turns[1];
    const auto busy = [&](int group) { return turns[group] >= 0 && turns[group] < round.turns; };
    uint8_t* stage = stages + place.stage * kStageBytes;
    Barrier& full = ring.full[place.stage];
    ring.empty[place.stage].wait(place.phase);
    full.arrive_and_expect(kDeepWeightBytes + (busy(0) + busy(1)) * kPieceBytes);
    const bool own = k < round.own_steps;  // of x and its part of the weight
    const int depth_there = (own ? k : k - round.own_steps) * kPieceDepth;
    constexpr int kOwn = kBoxes / kDeepBlocks;
    for (int box = round.rank * kOwn; box < (round.rank + 1) * kOwn; ++box) {
      const int column = round.column + box * kBoxColumns;
      hopper::copy_box_to_all(stage + box * kPieceBytes, w, full,
                              kByColumns ? column + (own ? 0 : round.width) : k * kPieceDepth,
                              kByColumns ? depth_there : column, (1 << kDeepBlocks) - 1);
    }
    for (int group = 0; group < kDeepGroups; ++group) {
      if (busy(group)) {
        hopper::copy_box(stage + kDeepWeightBytes + group * kPieceBytes, own ? x : more, full,
                         depth_there, round.first_row(turns[group], group));
      }
    }
    place.advance();
    ++k;
  }
}

// One warpgroup's products.
template <bool kByColumns>
struct Multiplier {
  const Round& round;
  DeepSignals& signals;
  const uint8_t* stages;
  uint8_t* tile;
  int group, warp, lane;
  uint32_t empty_of_peer;
  Place<kDeepStages> place;
  float acc[kTileRows * kDeepColumns / 128];

  __device__ Multiplier(const Round& round_, DeepSignals& signals_, const uint8_t* stages_,
                        uint8_t* tile_, int warp_)
      : round(round_),
        signals(signals_),
        stages(stages_),
        tile(tile_),
        group(warp_ / kWarpsPerGroup),
        warp(warp_ % kWarpsPerGroup),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        empty_of_peer(
            hopper::address_of_peer(signals_.ring.empty, static_cast<uint32_t>(1 - round_.rank))) {}

  // The stage is free as far as this warp goes, for both blocks.
  __device__ void release(int stage) {
    if (lane != 0) return;
    signals.ring.empty[stage].arrive();
    hopper::arrive_at_peer(empty_of_peer + static_cast<uint32_t>(stage * sizeof(Barrier)));
  }

  // Steps of the other warpgroup alone.
  __device__ void pass(int steps) {
    for (int step = 0; step < steps; ++step) {
      signals.ring.full[place.stage].wait(place.phase);
      __syncwarp();
      release(place.stage);
      place.advance();
    }
  }

  __device__ void hand_over(int turn) {
    // The tile before, of the other warpgroup.
    signals.finished[1 - group].wait(static_cast<uint32_t>((turn + group + 1) & 1));
    const int row = 16 * warp + lane % 16, second = lane / 16;
#pragma unroll
    for (int unit = 0; unit < kDeepColumns / kUnitColumns; unit += 2) {
      const float* a = acc + 4 * unit;
      hopper::store_matrices(unit_of_tile(tile, row, unit + second), pack(a[0], a[1]),
                             pack(a[2], a[3]), pack(a[4], a[5]), pack(a[6], a[7]));
    }
    __syncwarp();
    if (lane == 0) signals.ready[group].arrive();
  }

  __device__ void do_tile(int turn) {
    int before = -1;
    hopper::pin(acc);
    for (int k = 0; k < round.steps; ++k) {
      signals.ring.full[place.stage].wait(place.phase);
      hopper::fence_products();
      const uint8_t* stage = stages + place.stage * kStageBytes;
      const uint32_t a = hopper::operand(stage + kDeepWeightBytes + group * kPieceBytes);
      const uint32_t b = kByColumns ? hopper::column_operand(stage) : hopper::operand(stage);
#pragma unroll
      for (int i = 0; i < kPieceDepth / 16; ++i)
        hopper::multiply<kByColumns>(acc, a + 2 * i, b + (kByColumns ? 128 : 2) * i, k + i > 0);
      hopper::commit_products();
      if (before >= 0) {
        hopper::wait_products<1>();
        release(before);
      }
      before = place.stage;
      place.advance();
    }
    hopper::wait_products<0>();
    hopper::pin(acc);
    release(before);
    hand_over(turn);
  }

  __device__ void run() {
    if (group == 1) pass(round.lag);
    for (int turn = 0; turn < round.turns; ++turn)
      do_tile(turn);
    if (group == 0) pass(round.lag);
  }
};

template <Kind kKind>
__global__ void __cluster_dims__(kDeepBlocks, 1, 1) __launch_bounds__(kDeepThreads, 1)
    deep_product_kernel(const __grid_constant__ CUtensorMap x,
                        const __grid_constant__ CUtensorMap more,
                        const __grid_constant__ CUtensorMap w, const Task task) {
  constexpr bool kByColumns = !kIsForward<kKind>;
  extern __shared__ uint8_t dynamic[];
  auto* stages =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024);
  uint8_t* tile = stages + kDeepStages * kStageBytes;
  __shared__ DeepSignals signals;
  const Round round(task);
  // Known to be the same in a warp: else much is computed lane by lane.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpSize, 0);
  if (threadIdx.x == 0) signals.init();
  hopper::wait_for_cluster();

  if (warp < kMultipliers) {
    Multiplier<kByColumns>(round, signals, stages, tile, warp).run();
    hopper::wait_for_cluster();  // nobody arrives here any more
  } else if (warp < kMultipliers + kFinishers) {
    Finisher<kKind> finisher(task, round, signals, tile, warp - kMultipliers);
    finisher.run();
    if constexpr (kIsBackward<kKind>) finisher.write_sums(reinterpret_cast<float*>(tile));
  } else if (threadIdx.x % kWarpSize == 0) {
    feed_deep<kByColumns>(x, more, w, signals.ring, stages, round);
  }
}

}  // namespace

}  // namespace aifs::model::cuda
