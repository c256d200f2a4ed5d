// SPDX-License-Identifier: Apache-2.0
// The kernel for weights at most 512 deep and the launch of all; tall_tiles.cuh says how it
// works.
#include "model/kernels/cuda/tall_product.h"

#include <algorithm>

#include "model/kernels/cuda/current_card.h"
#include "model/kernels/cuda/deep_product.cuh"
#include "model/kernels/cuda/shared_room.h"
#include "model/kernels/cuda/tall_tiles.cuh"
#include "model/kernels/cuda/tensor_map.h"

namespace aifs::model::cuda {

namespace {

// The order of 32 columns of a weight: two of each eight, then two more. Copied so by column_map();
// here, by all consumers, for a weight that lies in memory by columns, which no map can do: four
// times four pairs of columns are transposed in every row.
__device__ void reorder_columns(uint8_t* weight, int depth) {
  const int parts = 4 * depth * kPieceDepth;
  for (int part = static_cast<int>(threadIdx.x); part < parts; part += kConsumers) {
    const int row = part / 2, first = part % 2 * 4;
    uint32_t words[4][4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const uint4 chunk =
          *reinterpret_cast<const uint4*>(weight + row * 128 + ((first + c) ^ (row % 8)) * 16);
      words[0][c] = chunk.x;
      words[1][c] = chunk.y;
      words[2][c] = chunk.z;
      words[3][c] = chunk.w;
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      *reinterpret_cast<uint4*>(weight + row * 128 + ((first + c) ^ (row % 8)) * 16) =
          make_uint4(words[c][0], words[c][1], words[c][2], words[c][3]);
    }
  }
  hopper::publish_shared();
}

// Asks for a weight: (width, depth), its columns in order, or else (depth, width).
template <bool kForward>
__device__ void fetch_weight(const CUtensorMap& w, uint8_t* weight, Barrier& there,
                             const Share& share) {
  there.arrive_and_expect(share.pieces * kWeightPieceBytes);
  for (int k = 0; k < share.pieces; ++k) {
    uint8_t* piece = weight + k * kWeightPieceBytes;
    const int depth = k * kPieceDepth;
    if constexpr (kForward) {
      hopper::copy_box5(piece, w, there, depth, share.column / kOrdered);
    } else {
      for (int half = 0; half < 2; ++half) {
        hopper::copy_box(piece + half * (kWeightPieceBytes / 2), w, there,
                         share.column + half * kBoxColumns, depth);
      }
    }
  }
}

__device__ void wait_for_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

template <Kind kKind, Kept kKept>
__global__ void __launch_bounds__(kTallThreads, 1)
    tall_product_kernel(const __grid_constant__ CUtensorMap x,
                        const __grid_constant__ CUtensorMap w, const Task task) {
  extern __shared__ uint8_t dynamic[];
  auto* weight =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024);
  uint8_t* pieces = weight + kMaxPieces * kWeightPieceBytes;
  auto& signals = *reinterpret_cast<Signals*>(pieces + kStages * kPieceBytes);
  // Known to be the same in a warp: else much is computed lane by lane.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpSize, 0);
  const Share share(task);
  if (threadIdx.x == 0) signals.init();
  if (kIsForward<kKind> && threadIdx.x < kColumns)
    signals.bias[threadIdx.x] = Worker<kKind, kKept>::kScale *
                                task.forward.bias[share.column + static_cast<int>(threadIdx.x)];
  __syncthreads();

  if (warp >= kGroups * kWarpsPerGroup) {
    hopper::give_registers<kRegistersOfCopier>();
    if (threadIdx.x == kConsumers) {
      fetch_weight<kIsForward<kKind>>(w, weight, signals.weight, share);
      feed(x, signals.ring, pieces, share);
    }
    return;
  }

  hopper::take_registers<kRegistersOfConsumer>();
  Worker<kKind, kKept> worker(task, share, signals, weight, pieces, warp);
  signals.weight.wait(0);
  if constexpr (!kIsForward<kKind>) {
    reorder_columns(weight, share.pieces);
    wait_for_consumers();
  }
  worker.run();
  if constexpr (kIsBackward<kKind>) {
    wait_for_consumers();  // the pieces have all been used: room for sums
    auto* parts = reinterpret_cast<float*>(pieces);
    worker.write_sums(parts + warp * kColumns);
    wait_for_consumers();
    if (threadIdx.x < kColumns) {
      float sum = 0.0f;
      for (int part = 0; part < kGroups * kWarpsPerGroup; ++part)
        sum += parts[part * kColumns + threadIdx.x];
      const int64_t to = int64_t{share.first} * task.width + share.column;
      task.backward.scratch[to + threadIdx.x] = sum;
    }
  }
}

// Boxes of 64 rows, 64 columns wide.
CUtensorMap box_map(const void* data, int64_t rows, int64_t columns, int64_t stride) {
  return make_map<2>(data, {columns, rows}, {stride}, {kBoxColumns, kTileRows});
}

// Describes a weight (width, depth): boxes of 128 rows, 64 columns wide, its rows in order.
CUtensorMap column_map(const TallProduct& p) {
  const int64_t w = p.weight_stride;
  return make_map<5>(p.weight, {p.depth, 2, 4, 4, p.width / kOrdered}, {w, 8 * w, 2 * w, 32 * w},
                     {kPieceDepth, 2, 4, 4, kColumns / kOrdered});
}

constexpr int64_t kBlockDepth = int64_t{kMaxPieces} * kPieceDepth;

// How many blocks, or clusters of them, share the rows of a slice of columns.
int64_t teams_for(int64_t blocks, int64_t slices, int64_t shares, int64_t parts) {
  return std::max<int64_t>(1, std::min({blocks / slices, kColumnSumParts / parts, shares}));
}

template <Kind kKind, Kept kKept = Kept::kNothing>
int64_t launch_tall(const TallProduct& p, const Task& task, cudaStream_t stream) {
  auto* kernel = &tall_product_kernel<kKind, kKept>;
  [[maybe_unused]] static const bool room = make_room(kernel, kSharedBytes, "tall_product");
  const CUtensorMap x = box_map(p.x, p.rows, p.depth, p.depth);
  const CUtensorMap w =
      kIsForward<kKind> ? column_map(p) : box_map(p.weight, p.depth, p.width, p.weight_stride);
  constexpr int kRows = kTileRows * kGroups;
  const int64_t slices = p.width / kColumns;
  const int64_t teams =
      teams_for(current_card().processors, slices, (p.rows + kRows - 1) / kRows, 1);
  const auto blocks = static_cast<unsigned>(teams * slices);
  kernel<<<blocks, kTallThreads, kSharedBytes, stream>>>(x, w, task);
  check_launch("tall_product");
  return teams;
}

template <Kind kKind>
int64_t launch_deep(const TallProduct& p, const Task& task, cudaStream_t stream) {
  auto* kernel = &deep_product_kernel<kKind>;
  [[maybe_unused]] static const bool room = make_room(kernel, kDeepSharedBytes, "deep_product");
  const int64_t own = p.depth - p.more_depth;
  const CUtensorMap x = box_map(p.x, p.rows, own, own);
  const CUtensorMap more =
      p.more != nullptr ? box_map(p.more, p.rows, p.more_depth, p.more_depth) : x;
  const int64_t beside = p.more != nullptr ? 2 * p.width : p.width;
  const CUtensorMap w = kIsForward<kKind> ? box_map(p.weight, p.width, p.depth, p.weight_stride)
                                          : box_map(p.weight, own, beside, p.weight_stride);
  const int64_t slices = (p.width + kDeepColumns - 1) / kDeepColumns;
  const int64_t teams = teams_for(current_card().processors / kDeepBlocks, slices,
                                  (p.rows + kClusterRows - 1) / kClusterRows, kDeepBlocks);
  const auto blocks = static_cast<unsigned>(teams * slices * kDeepBlocks);
  kernel<<<blocks, kDeepThreads, kDeepSharedBytes, stream>>>(x, more, w, task);
  check_launch("deep_product");
  return teams * kDeepBlocks;
}

template <Kind kKind>
int64_t launch_kept(const TallProduct& p, const Task& task, cudaStream_t stream) {
  if constexpr (kIsForward<kKind>) {
    if (task.forward.slope != nullptr) return launch_tall<kKind, Kept::kSlope>(p, task, stream);
    if (task.forward.pre != nullptr) return launch_tall<kKind, Kept::kPre>(p, task, stream);
  }
  return launch_tall<kKind>(p, task, stream);
}

// Gives the parts of column sums that are written.
template <Kind kKind>
int64_t launch(const TallProduct& p, const Task& task, cudaStream_t stream) {
  return p.depth > kBlockDepth ? launch_deep<kKind>(p, task, stream)
                               : launch_kept<kKind>(p, task, stream);
}

Task task_of(const TallProduct& p) {
  return {static_cast<int>(p.rows),
          static_cast<int>(p.width),
          static_cast<int>(p.depth),
          static_cast<int>(p.depth - p.more_depth),
          {},
          {},
          {}};
}

}  // namespace

bool tall_product_supported(int64_t width, int64_t depth) {
  return width % kColumns == 0 && width > 0 && depth % 8 == 0 && depth > 0 &&
         (depth > kBlockDepth || width <= kMaxWidth) && current_card().major == 9 &&
         encode() != nullptr;
}

bool tall_product_of_pair_supported(int64_t width, int64_t depth) {
  return depth > kBlockDepth && depth / 2 % kPieceDepth == 0 &&
         tall_product_supported(width, depth);
}

bool tall_product_bias_supported(int64_t width, int64_t depth) {
  return depth <= kBlockDepth && tall_product_supported(width, depth);
}

void product_bias(const TallProduct& p, const ProductBias& l, cudaStream_t stream) {
  if (p.rows == 0) return;
  Task task = task_of(p);
  task.forward.bias = l.bias;
  task.forward.out = l.out;
  launch_tall<Kind::kBias>(p, task, stream);
}

void product_gelu(const TallProduct& p, const ProductGelu& g, cudaStream_t stream) {
  if (p.rows == 0) return;
  Task task = task_of(p);
  task.forward = g;
  if (g.at_target != nullptr) {
    launch<Kind::kGeluGather>(p, task, stream);
  } else if (g.addend != nullptr) {
    launch<Kind::kGeluAdd>(p, task, stream);
  } else {
    launch<Kind::kGelu>(p, task, stream);
  }
}

void product_gelu_backward(const TallProduct& p, const ProductGeluBackward& b,
                           cudaStream_t stream) {
  if (p.rows == 0) return;
  Task task = task_of(p);
  task.backward = b;
  const int64_t parts = b.slope != nullptr ? launch<Kind::kBackwardSlope>(p, task, stream)
                                           : launch<Kind::kBackward>(p, task, stream);
  add_column_sums(b.scratch, {b.column_sum}, p.width, stream, parts);
}

void product_sum(const TallProduct& p, const ProductSum& s, cudaStream_t stream) {
  if (p.rows == 0) return;
  const bool deep = p.depth > kBlockDepth;
  if (!deep && s.addend == nullptr && s.at_target == nullptr)
    throw std::runtime_error("product_sum: nothing to be added");
  Task task = task_of(p);
  task.sum = s;
  if (!deep && s.at_target != nullptr) {
    launch_tall<Kind::kSumGather>(p, task, stream);
  } else {
    launch<Kind::kSum>(p, task, stream);
  }
}

}  // namespace aifs::model::cuda
