// SPDX-License-Identifier: Apache-2.0
// A block keeps 128 columns of the product, and so 128 rows of the weight, in shared memory for its
// whole life, and walks over tiles of 64 rows. Two warpgroups take tiles in turn, each fed by a
// copying warp of its own through a ring of pieces 64 deep, so that the epilogue of one runs under
// the products of the other. A ring must not be shared: a warpgroup one phase ahead would pass the
// wait for the other's piece.
//
// The epilogue works from registers. A lane holds two neighbouring columns of every eighth; four
// lanes exchange such pairs (transpose_quad), after which each holds eight neighbours, 16 bytes.
#include <algorithm>

#include "model/kernels/cuda/hopper.cuh"
#include "model/kernels/cuda/row_tile.cuh"
#include "model/kernels/cuda/tall_product.h"

namespace aifs::model::cuda {

namespace {

using Bf16 = __nv_bfloat16;
using hopper::Barrier;

constexpr int kTileRows = 64, kColumns = 128, kPieceDepth = 64, kMaxPieces = 8;
constexpr int kGroups = 2, kStages = 6, kWarpsPerGroup = 4;
constexpr int kConsumers = kGroups * kWarpsPerGroup * kWarpSize;
constexpr int kProductThreads = kConsumers + kGroups * kWarpSize;
constexpr int kPieceBytes = kTileRows * kPieceDepth * 2;
constexpr int kWeightPieceBytes = kColumns * kPieceDepth * 2;
constexpr int kSharedBytes =
    kMaxPieces * kWeightPieceBytes + kGroups * kStages * kPieceBytes + 1024;

enum class Kind { kGelu, kGeluAdd, kGeluGather, kBackward };

struct Task {
  int rows, width, depth;
  ProductGelu forward;
  ProductGeluBackward backward;
};

// x Phi(x) and its derivative, Phi as in gelu.cuh by way of one tanh instruction.
__device__ inline float phi_of(float x, float& slope) {
  constexpr float a = 0.7975078840f, b = 0.03700564618f, c = -0.00035151680886f;
  const float s = fminf(x * x, 36.0f);
  slope = a + s * (3.0f * b + s * 5.0f * c);
  float t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(x * (a + s * (b + s * c))));
  return 0.5f + 0.5f * t;
}
__device__ inline float fast_gelu(float x) {
  float slope;
  return x * phi_of(x, slope);
}

__device__ inline float2 unpack(uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<__nv_bfloat162*>(&pair));
}
__device__ inline uint32_t pack(float x, float y) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<uint32_t*>(&pair);
}

struct Unit {  // eight columns of one row, or the four pairs a lane holds of 32 columns
  uint32_t pairs[4];
};

// Pair i of lane q goes to lane i of the same four, as its pair q.
__device__ inline void transpose_quad(Unit& u, int q) {
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, (q & 1) ? u.pairs[i] : u.pairs[i + 1], 1);
    if (q & 1) {
      u.pairs[i] = got;
    } else {
      u.pairs[i + 1] = got;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, (q & 2) ? u.pairs[i] : u.pairs[i + 2], 2);
    if (q & 2) {
      u.pairs[i] = got;
    } else {
      u.pairs[i + 2] = got;
    }
  }
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

struct Ring {
  Barrier full[kStages], empty[kStages];
};

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
  int column, first, step, tiles;
  __device__ Share(const Task& task, int warpgroup) {
    const int slices = task.width / kColumns, teams = static_cast<int>(gridDim.x) / slices;
    column = static_cast<int>(blockIdx.x) % slices * kColumns;
    first = static_cast<int>(blockIdx.x) / slices + warpgroup * teams;
    step = kGroups * teams;
    tiles = (task.rows + kTileRows - 1) / kTileRows;
  }
};

__device__ inline void feed(const Task& task, const CUtensorMap& x, Ring& ring, uint8_t* pieces,
                            const Share& share) {
  const int depth = (task.depth + kPieceDepth - 1) / kPieceDepth;
  Place place;
  place.phase = 1;  // all pieces are free at the start
  for (int tile = share.first; tile < share.tiles; tile += share.step) {
    for (int k = 0; k < depth; ++k) {
      ring.empty[place.stage].wait(place.phase);
      ring.full[place.stage].arrive_and_expect(kPieceBytes);
      hopper::copy_box(pieces + place.stage * kPieceBytes, x, ring.full[place.stage],
                       k * kPieceDepth, tile * kTileRows);
      place.advance();
    }
  }
}

// One warpgroup's work on its tiles.
template <Kind kKind>
struct Worker {
  static constexpr bool kGather = kKind == Kind::kGeluGather, kBackward = kKind == Kind::kBackward;
  static constexpr bool kLoads = kKind != Kind::kGelu;

  const Task& task;
  const Share& share;
  const float* bias;  // of the block's columns, in shared memory
  int warp, lane, q;
  Place place;
  float acc[64];
  Unit loaded[8];  // unit i: row half i % 2, columns 32 (i / 2) + 8 q ...
  float sums[kBackward ? 32 : 1];
  int next_target[2], next_source[2];

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
    return int64_t{row} * task.width + share.column + 32 * (unit / 2) + 8 * q;
  }

  // The ends of a tile's edges, asked for one tile ahead.
  __device__ void ask_for_ends(int tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(tile, half);
      const bool valid = row < task.rows;
      next_target[half] = valid ? task.forward.ends.target[row] : 0;
      next_source[half] = valid ? task.forward.ends.source[row] : 0;
    }
  }

  // Pairs 2 columns wide, in the order of the sums, of unit i.
  __device__ static constexpr int first_sum(int unit, int pair) {
    return 4 * (4 * (unit / 2) + pair) + 2 * (unit % 2);
  }

  // The derivative at unit i of `loaded` replaces it, in the order of the sums; the GELU is stored.
  __device__ void differentiate(int i, int row, bool valid) {
    Unit value;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 x = unpack(loaded[i].pairs[k]);
      float slope_x, slope_y;
      const float phi_x = phi_of(x.x, slope_x), phi_y = phi_of(x.y, slope_y);
      value.pairs[k] = pack(x.x * phi_x, x.y * phi_y);
      loaded[i].pairs[k] = pack(phi_x + x.x * phi_x * (1.0f - phi_x) * 2.0f * slope_x,
                                phi_y + x.y * phi_y * (1.0f - phi_y) * 2.0f * slope_y);
    }
    store_unit(static_cast<Bf16*>(task.backward.out) + at(row, i), value,
               valid && task.backward.out != nullptr);
    transpose_quad(loaded[i], q);
  }

  __device__ void finish_backward(const int (&rows)[2], const bool (&valid)[2]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      Unit out;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int s = first_sum(i, k), column = 2 * (4 * (i / 2) + k);
        const float2 derivative = unpack(loaded[i].pairs[k]);
        const float x = acc[s] * derivative.x, y = acc[s + 1] * derivative.y;
        if constexpr (kBackward) {
          sums[column] += x;
          sums[column + 1] += y;
        }
        out.pairs[k] = pack(x, y);
      }
      transpose_quad(out, q);
      store_unit(static_cast<Bf16*>(task.backward.gradient) + at(rows[i % 2], i), out,
                 valid[i % 2]);
    }
  }

  __device__ void finish_forward(const int (&rows)[2], const bool (&valid)[2],
                                 Unit (&others)[kGather ? 8 : 1]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if constexpr (kLoads) transpose_quad(loaded[i], q);
      if constexpr (kGather) transpose_quad(others[i], q);
      Unit pre, out;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int s = first_sum(i, k);
        const float2 b = *reinterpret_cast<const float2*>(bias + 8 * (4 * (i / 2) + k) + 2 * q);
        float x = acc[s] + b.x, y = acc[s + 1] + b.y;
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
        pre.pairs[k] = pack(x, y);
        out.pairs[k] = pack(fast_gelu(x), fast_gelu(y));
      }
      transpose_quad(out, q);
      if (task.forward.pre != nullptr) {
        transpose_quad(pre, q);
        store_unit(static_cast<Bf16*>(task.forward.pre) + at(rows[i % 2], i), pre, valid[i % 2]);
      }
      store_unit(static_cast<Bf16*>(task.forward.out) + at(rows[i % 2], i), out, valid[i % 2]);
    }
  }

  __device__ void do_tile(int tile, Ring& ring, const uint8_t* weight, const uint8_t* pieces) {
    const int rows[2] = {row_of(tile, 0), row_of(tile, 1)};
    const bool valid[2] = {rows[0] < task.rows, rows[1] < task.rows};
    const int64_t targets[2] = {kGather ? next_target[0] : 0, kGather ? next_target[1] : 0};
    Unit others[kGather ? 8 : 1];
    if constexpr (kLoads) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int half = i % 2;
        const void* table = kBackward ? task.backward.pre
                            : kGather ? task.forward.at_source
                                      : task.forward.addend;
        const int row = kGather ? next_source[half] : rows[half];
        loaded[i] = load_unit(static_cast<const Bf16*>(table) + at(row, i), valid[half]);
      }
    }
    if constexpr (kGather) ask_for_ends(tile + share.step);

    const int depth = (task.depth + kPieceDepth - 1) / kPieceDepth;
    int before = -1;
    hopper::pin(acc);
    hopper::fence_products();
#pragma unroll
    for (int k = 0; k < kMaxPieces; ++k) {
      if (k < depth) {
        ring.full[place.stage].wait(place.phase);
        hopper::fence_products();
        const uint64_t a = hopper::operand(pieces + place.stage * kPieceBytes);
        const uint64_t b = hopper::operand(weight + k * kWeightPieceBytes);
#pragma unroll
        for (int i = 0; i < kPieceDepth / 16; ++i)
          hopper::multiply(acc, a + 2 * i, b + 2 * i, k + i > 0);
        hopper::commit_products();
      }
      // Work for the time that the products take.
      if constexpr (kBackward) differentiate(k, rows[k % 2], valid[k % 2]);
      if constexpr (kGather) {
        others[k] = load_unit(static_cast<const Bf16*>(task.forward.at_target) +
                                  at(static_cast<int>(targets[k % 2]), k),
                              valid[k % 2]);
      }
      if (k < depth) {
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
        if (lane < 4) to[8 * (i / 2) + 2 * q + i % 2] = sums[i];
      }
    }
  }
};

__device__ inline void wait_for_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

template <Kind kKind>
__global__ void __launch_bounds__(kProductThreads, 1)
    tall_product_kernel(const __grid_constant__ CUtensorMap x,
                        const __grid_constant__ CUtensorMap w, const Task task) {
  extern __shared__ uint8_t dynamic[];
  auto* weight =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024);
  uint8_t* pieces = weight + kMaxPieces * kWeightPieceBytes;
  __shared__ Ring rings[kGroups];
  __shared__ Barrier weight_there;
  __shared__ alignas(8) float bias[kColumns];
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const bool copies = warp >= kGroups * kWarpsPerGroup;
  const int group = copies ? warp - kGroups * kWarpsPerGroup : warp / kWarpsPerGroup;
  const Share share(task, group);
  if (threadIdx.x == 0) {
    for (Ring& ring : rings) {
      for (int s = 0; s < kStages; ++s) {
        ring.full[s].init(1);
        ring.empty[s].init(kWarpsPerGroup);
      }
    }
    weight_there.init(1);
    hopper::publish_barriers();
  }
  if (kKind != Kind::kBackward && threadIdx.x < kColumns)
    bias[threadIdx.x] = task.forward.bias[share.column + threadIdx.x];
  __syncthreads();

  uint8_t* own_pieces = pieces + group * kStages * kPieceBytes;
  if (copies) {
    if (threadIdx.x % kWarpSize != 0) return;
    if (group == 0) {
      const int depth = (task.depth + kPieceDepth - 1) / kPieceDepth;
      weight_there.arrive_and_expect(depth * kWeightPieceBytes);
      for (int k = 0; k < depth; ++k) {
        hopper::copy_box(weight + k * kWeightPieceBytes, w, weight_there, k * kPieceDepth,
                         share.column);
      }
    }
    feed(task, x, rings[group], own_pieces, share);
    return;
  }

  Worker<kKind> worker(task, share, bias);
  if constexpr (Worker<kKind>::kGather) worker.ask_for_ends(share.first);
  weight_there.wait(0);
  for (int tile = share.first; tile < share.tiles; tile += share.step)
    worker.do_tile(tile, rings[group], weight, own_pieces);
  if constexpr (kKind == Kind::kBackward) {
    wait_for_consumers();  // the pieces have all been used: room for sums
    auto* parts = reinterpret_cast<float*>(pieces);
    worker.write_sums(parts + warp * kColumns);
    wait_for_consumers();
    if (threadIdx.x < kColumns) {
      float sum = 0.0f;
      for (int w8 = 0; w8 < kGroups * kWarpsPerGroup; ++w8)
        sum += parts[w8 * kColumns + threadIdx.x];
      const int team = static_cast<int>(blockIdx.x) / (task.width / kColumns);
      task.backward.scratch[int64_t{team} * task.width + share.column + threadIdx.x] = sum;
    }
  }
}

using Encode = decltype(&cuTensorMapEncodeTiled);

Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                       cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess) {
    return nullptr;
  }
  return reinterpret_cast<Encode>(function);
}

Encode encode() {
  static const Encode function = find_encode();
  return function;
}

// Boxes of `box_rows` rows, 64 columns wide; what lies outside the matrix reads as zero.
CUtensorMap box_map(const void* data, int64_t rows, int64_t columns, int64_t stride, int box_rows) {
  CUtensorMap map;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(stride) * sizeof(Bf16)};
  const cuuint32_t box[2] = {kPieceDepth, static_cast<cuuint32_t>(box_rows)}, ones[2] = {1, 1};
  const CUresult result =
      encode()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, strides,
               box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("no tensor map for " + std::to_string(rows) + " rows of " +
                             std::to_string(columns) + ": error " + std::to_string(result));
  }
  return map;
}

struct Card {
  int major = 0, processors = 0;
};

Card current_card() {
  int device = 0;
  Card card;
  if (cudaGetDevice(&device) != cudaSuccess) return card;
  cudaDeviceGetAttribute(&card.major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&card.processors, cudaDevAttrMultiProcessorCount, device);
  return card;
}

// Blocks that share a slice of columns; the parts of column sums.
int64_t teams_for(const TallProduct& p) {
  const int64_t slices = p.width / kColumns;
  const int64_t tiles = (p.rows + kTileRows - 1) / kTileRows;
  const int64_t most = std::min<int64_t>(current_card().processors / slices, kColumnSumParts);
  return std::max<int64_t>(1, std::min(most, (tiles + kGroups - 1) / kGroups));
}

template <Kind kKind>
void launch(const TallProduct& p, const Task& task, cudaStream_t stream) {
  auto* kernel = &tall_product_kernel<kKind>;
  static const cudaError_t room =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (room != cudaSuccess)
    throw std::runtime_error(std::string("tall_product: ") + cudaGetErrorString(room));
  const CUtensorMap x = box_map(p.x, p.rows, p.depth, p.depth, kTileRows);
  const CUtensorMap w = box_map(p.weight, p.width, p.depth, p.weight_stride, kColumns);
  const auto blocks = static_cast<unsigned>(teams_for(p) * (p.width / kColumns));
  kernel<<<blocks, kProductThreads, kSharedBytes, stream>>>(x, w, task);
  check_launch("tall_product");
}

Task task_of(const TallProduct& p) {
  return {static_cast<int>(p.rows), static_cast<int>(p.width), static_cast<int>(p.depth), {}, {}};
}

}  // namespace

bool tall_product_supported(int64_t width, int64_t depth) {
  const bool sizes = width % kColumns == 0 && width > 0 && width <= kMaxWidth && depth % 8 == 0 &&
                     depth > 0 && depth <= int64_t{kMaxPieces} * kPieceDepth;
  return sizes && current_card().major == 9 && encode() != nullptr;
}

void product_gelu(const TallProduct& p, const ProductGelu& g, cudaStream_t stream) {
  if (p.rows == 0) return;
  Task task = task_of(p);
  task.forward = g;
  if (g.at_target != nullptr) return launch<Kind::kGeluGather>(p, task, stream);
  if (g.addend != nullptr) return launch<Kind::kGeluAdd>(p, task, stream);
  launch<Kind::kGelu>(p, task, stream);
}

void product_gelu_backward(const TallProduct& p, const ProductGeluBackward& b,
                           cudaStream_t stream) {
  if (p.rows == 0) return;
  Task task = task_of(p);
  task.backward = b;
  launch<Kind::kBackward>(p, task, stream);
  add_column_sums(b.scratch, {b.column_sum}, p.width, stream, teams_for(p));
}

}  // namespace aifs::model::cuda
