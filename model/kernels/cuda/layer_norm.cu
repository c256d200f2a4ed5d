// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/layer_norm.h"

#include <algorithm>

#include "model/kernels/cuda/row_tile.cuh"
#include "model/kernels/cuda/shared_room.h"

namespace aifs::model::cuda {

namespace {

// Sets columns beyond the width to zero, where arithmetic made them something else.
template <class Tile>
__device__ void clear_beyond(Tile& tile, int width) {
#pragma unroll
  for (int k = 0; k < Tile::kChunks; ++k) {
    if (Tile::column(k) < width) continue;
#pragma unroll
    for (int i = 0; i < Tile::kVector; ++i)
      tile.x[k][i] = 0.0f;
  }
}

// Returns what is added to rows, before the norm or after it.
__device__ inline const void* added_rows(const NormForward& f) {
  return f.addend != nullptr ? f.addend : f.residual;
}
enum class Added { kNothing, kBefore, kAfter, kEither };  // kEither: to be found out

// Works on z in x; load_added(tile) gives the row of what is added.
template <class T, Added kAdded = Added::kEither, class Tile, class LoadAdded>
__device__ void norm_row(const NormForward& f, int64_t row, int width, Tile& x,
                         LoadAdded&& load_added) {
  Tile other;
  if (kAdded == Added::kBefore || (kAdded == Added::kEither && f.addend != nullptr)) {
    load_added(other);
    x.add(other);
    x.store(static_cast<T*>(f.z_sum) + row * width, width);
    x.apply([](float v) { return to_float(from_float<T>(v)); });  // as the backward pass reads it
  }
  const float mean = x.sum() / static_cast<float>(width);
  x.apply([=](float v) { return v - mean; });
  clear_beyond(x, width);
  Tile square = x;
  square.apply([](float v) { return v * v; });
  const float inverse = rsqrtf(square.sum() / static_cast<float>(width) + f.eps);
  other.load(f.weight, width);
  x.combine(other, [=](float v, float w) { return v * inverse * w; });
  other.load(f.bias, width);
  x.add(other);
  if (kAdded == Added::kAfter || (kAdded == Added::kEither && f.residual != nullptr)) {
    load_added(other);
    x.add(other);
  }
  if (f.out != nullptr) x.store(static_cast<T*>(f.out) + row * width, width);
  if (threadIdx.x % kWarpSize == 0) {
    reinterpret_cast<float2*>(f.statistics)[row] = make_float2(mean, inverse);
  }
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads)
    norm_forward_kernel(int64_t rows, int width, NormForward f) {
  const int64_t item = global_warp();
  Tile x;
  const auto norm = [&](int64_t row) {
    x.load(static_cast<const T*>(f.z) + row * width, width);
    norm_row<T>(f, row, width, x, [&](Tile& added) {
      added.load(static_cast<const T*>(added_rows(f)) + row * width, width);
    });
  };
  if (f.groups.begin == nullptr) {
    if (item < rows) norm(item);
    return;
  }
  if (item >= f.groups.count) return;
  Tile sum;
  sum.fill(0.0f);
  const int32_t end = f.groups.begin[item + 1];
  for (int32_t row = f.groups.begin[item]; row < end; ++row) {
    norm(row);
    sum.add(x);
  }
  sum.store(static_cast<T*>(f.sums) + item * width, width);
}

// Copies to shared memory behind the thread's back where they are of a size that allows it.
template <class Pack>
__device__ void copy_async(Pack* to, const Pack* from) {
  if constexpr (sizeof(Pack) == 16 || sizeof(Pack) == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(sizeof(Pack))
                 : "memory");
  } else {
    *to = *from;
  }
}

// Rows of up to 16 columns a lane come to shared memory ahead of their turn: a lane reads what it
// has copied itself. Blocks stay for many groups (or rows, each a group of its own).
constexpr int kRingRows = 3, kRingBlocksHere = 3, kRingBlocks = 132 * kRingBlocksHere * 4;

template <class Tile>
constexpr int kWidth = Tile::kVector* Tile::kChunks* kWarpSize;  // of a warp's row
template <class T, class Tile>
constexpr bool kHasRing = Tile::kVector * sizeof(T) == 16 && Tile::kVector* Tile::kChunks <= 16;

template <class T, class Tile>
struct ForwardRing {
  using Row = Pack<T, Tile::kVector>[Tile::kChunks][kThreads];
  Row z[kRingRows], added[kRingRows];

  __device__ static void ask(Row& to, const void* rows, int64_t row, int width) {
    if (rows == nullptr) return;
    const T* from = static_cast<const T*>(rows) + row * width;
#pragma unroll
    for (int k = 0; k < Tile::kChunks; ++k) {
      const int c = Tile::column(k);
      if (c < width)
        copy_async(&to[k][threadIdx.x], reinterpret_cast<const Pack<T, Tile::kVector>*>(from + c));
    }
  }
  __device__ static void read(Tile& tile, const Row& from, int width) {
#pragma unroll
    for (int k = 0; k < Tile::kChunks; ++k) {
      Pack<T, Tile::kVector> pack{};
      if (Tile::column(k) < width) pack = from[k][threadIdx.x];
#pragma unroll
      for (int i = 0; i < Tile::kVector; ++i)
        tile.x[k][i] = to_float(pack.values[i]);
    }
  }
};

// The groups of one warp, every step()-th.
struct WarpGroups {
  const int32_t* begin;
  int count;
  __device__ static int first() { return static_cast<int>(global_warp()); }
  __device__ static int step() { return static_cast<int>(gridDim.x) * kWarpsPerBlock; }
  __device__ int begin_of(int group) const { return begin != nullptr ? begin[group] : group; }
};

// The rows of a warp's groups one after another; where the next group begins is known early.
struct WarpRows {
  const WarpGroups& groups;
  int group = WarpGroups::first(), row = 0, end = 0, next_row = 0, next_end = 0;

  __device__ explicit WarpRows(const WarpGroups& groups_) : groups(groups_) {
    look(group);
    row = next_row;
    end = next_end;
    look(group + WarpGroups::step());
  }
  __device__ void look(int at) {
    if (at >= groups.count) return;
    next_row = groups.begin_of(at);
    next_end = groups.begin_of(at + 1);
  }
  // True if there is one more, then `row`.
  __device__ bool find() {
    while (group < groups.count && row == end) {
      group += WarpGroups::step();
      row = next_row;
      end = next_end;
      look(group + WarpGroups::step());
    }
    return group < groups.count;
  }
};

// kExact: rows are as wide as a tile.
template <class T, class Tile, bool kExact, Added kAdded>
__global__ void __launch_bounds__(kThreads, kRingBlocksHere)
    norm_forward_ring_kernel(int count, int any_width, NormForward f) {
  const int width = kExact ? kWidth<Tile> : any_width;
  extern __shared__ __align__(16) uint8_t dynamic[];
  auto& ring = *reinterpret_cast<ForwardRing<T, Tile>*>(dynamic);
  const WarpGroups groups{f.groups.begin, count};
  WarpRows ahead(groups);
  int free = 0, now = 0;  // places in the ring
  const auto turn = [](int& place) { place = place + 1 == kRingRows ? 0 : place + 1; };
  const auto ask = [&] {
    if (ahead.find()) {
      ring.ask(ring.z[free], f.z, ahead.row, width);
      if (kAdded != Added::kNothing) ring.ask(ring.added[free], added_rows(f), ahead.row, width);
      ++ahead.row;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    turn(free);
  };
#pragma unroll
  for (int i = 0; i + 1 < kRingRows; ++i)
    ask();
  for (int group = WarpGroups::first(); group < count; group += WarpGroups::step()) {
    Tile x, sum;
    sum.fill(0.0f);
    const int end = groups.begin_of(group + 1);
    for (int row = groups.begin_of(group); row < end; ++row) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kRingRows - 2) : "memory");
      ring.read(x, ring.z[now], width);
      norm_row<T, kAdded>(f, row, width, x,
                          [&](Tile& added) { ring.read(added, ring.added[now], width); });
      turn(now);
      ask();
      sum.add(x);
    }
    if (f.sums != nullptr) sum.store(static_cast<T*>(f.sums) + int64_t{group} * width, width);
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// The backward pass is bound by memory, and its three column sums fill the registers: a row is
// shared by so many warps (a team) that a lane holds 16 columns at most, there is one large block
// on each processor, and rows to come are copied to shared memory while one is worked on. A lane
// reads what it has copied itself, so nothing has to be waited for but its own copies.
constexpr int kTeamWarps = 12, kTeamThreads = kTeamWarps * kWarpSize, kTeamBlocks = 132;

template <class Tile>
constexpr int kTeam = Tile::kVector* Tile::kChunks <= 16
                          ? 1
                          : (Tile::kVector* Tile::kChunks == 32 ? 2 : 4);

// The part of a lane of a row shared by kWarps warps, in fp32.
template <int kVector_, int kChunks_, int kWarps>
struct TeamTile {
  static constexpr int kVector = kVector_, kChunks = kChunks_;
  float x[kChunks][kVector];

  __device__ static int column(int chunk) {
    const int lane = static_cast<int>(threadIdx.x) % (kWarps * kWarpSize);
    return (chunk * kWarps * kWarpSize + lane) * kVector;
  }
  template <class F>
  __device__ static void for_all(F f) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        f(k, i);
  }
};

// A ring of rows on their way: what one lane reads of z, the gradient of the rows, that of the sums
// or what comes past the norm, and the statistics. Of two rows at once in 16 bits, so that one
// computes while the other waits for its sums; and of as many more.
template <class T, class Tile>
struct Ahead {
  static constexpr int kAtOnce = sizeof(T) == 2 ? 2 : 1;
  using Piece = Pack<T, Tile::kVector>;
  struct Row {
    Piece z[Tile::kChunks][kTeamThreads], d_out[Tile::kChunks][kTeamThreads];
    Piece more[Tile::kChunks][kTeamThreads];
    float2 statistics[kTeamThreads];
  };
  Row rows[2][kAtOnce];
};

template <class T, class Tile>
__device__ void copy_row(Pack<T, Tile::kVector> (&to)[Tile::kChunks][kTeamThreads],
                         const void* rows, int64_t row, int width) {
  if (rows == nullptr) return;
  const T* from = static_cast<const T*>(rows) + row * width;
#pragma unroll
  for (int k = 0; k < Tile::kChunks; ++k) {
    const int c = Tile::column(k);
    if (c < width) {
      copy_async(&to[k][threadIdx.x], reinterpret_cast<const Pack<T, Tile::kVector>*>(from + c));
    }
  }
}

template <class T, class Tile>
__device__ void store_row(void* rows, int64_t row, int width, const Tile& tile) {
#pragma unroll
  for (int k = 0; k < Tile::kChunks; ++k) {
    Pack<T, Tile::kVector> pack;
#pragma unroll
    for (int i = 0; i < Tile::kVector; ++i)
      pack.values[i] = from_float<T>(tile.x[k][i]);
    const int c = Tile::column(k);
    if (c < width)
      *reinterpret_cast<Pack<T, Tile::kVector>*>(static_cast<T*>(rows) + row * width + c) = pack;
  }
}

// Sums of all values over a team. `shared` holds them for each warp, twice: `turn` alternates.
template <int kWarps, int kRows, int kMostRows>
__device__ void team_sum(float2 (&values)[kRows], float2 (*shared)[kTeamWarps][kMostRows],
                         int turn) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (float2& value : values) {
      value.x += __shfl_xor_sync(~0u, value.x, offset);
      value.y += __shfl_xor_sync(~0u, value.y, offset);
    }
  }
  if constexpr (kWarps > 1) {
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize, team = warp / kWarps;
    if (threadIdx.x % kWarpSize == 0) {
#pragma unroll
      for (int j = 0; j < kRows; ++j)
        shared[turn][warp][j] = values[j];
    }
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kWarps * kWarpSize) : "memory");
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      values[j] = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float2 other = shared[turn][team * kWarps + w][j];
        values[j].x += other.x;
        values[j].y += other.y;
      }
    }
  }
}

// Adds up the tiles of the teams of a block in their order, into parts of `width` each.
template <int kWarps, class Tile>
__device__ void write_team_sums(const Tile (&tiles)[3], float* parts, float* shared, int width) {
  const int team = static_cast<int>(threadIdx.x) / (kWarps * kWarpSize);
  for (int turn = 0; turn < kTeamWarps / kWarps; ++turn) {
    __syncthreads();
    if (turn != team) continue;
#pragma unroll
    for (int t = 0; t < 3; ++t) {
      Tile::for_all([&](int k, int i) {
        const int c = Tile::column(k) + i;
        float& sum = shared[t * width + c];
        if (c < width) sum = turn == 0 ? tiles[t].x[k][i] : sum + tiles[t].x[k][i];
      });
    }
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < 3 * width; c += kTeamThreads)
    parts[c] = shared[c];
}

// Says what there is beside the gradients of the rows: those of their sums or what comes past the
// norm; kEither: to be found out.
enum class Beside { kNothing, kSums, kPast, kEither };

// kExact: the lanes of a team have no columns beyond the width.
template <class T, class Tile, int kWarps, bool kExact, Beside kBeside>
__global__ void __launch_bounds__(kTeamThreads, 1)
    norm_backward_kernel(int64_t rows, int any_width, NormBackward b) {
  const int width = kExact ? kWarps * kWidth<Tile> : any_width;
  extern __shared__ __align__(16) uint8_t dynamic[];
  using Rows = Ahead<T, Tile>;
  constexpr int kAtOnce = Rows::kAtOnce, kTeams = kTeamWarps / kWarps;
  const bool with_sums =
      kBeside == Beside::kEither ? b.d_sums != nullptr : kBeside == Beside::kSums;
  const bool with_past =
      kBeside == Beside::kEither ? b.d_past != nullptr : kBeside == Beside::kPast;
  constexpr int kElements = Tile::kChunks * Tile::kVector, kLanes = kWarps * kWarpSize;
  __shared__ float2 partial[2][kTeamWarps][kAtOnce];
  __shared__ float weights[kElements][kLanes];
  Rows& ahead = *reinterpret_cast<Rows*>(dynamic);
  Tile sums[3]{};  // of g * norm(z), g, d_z
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes;
  const float scale = 1.0f / static_cast<float>(width);
  const int64_t step = int64_t{gridDim.x} * kTeams;
  // Known to be the same in a warp: else much is computed lane by lane.
  const int warp = __shfl_sync(~0u, thread / kWarpSize, 0);
  int64_t row = int64_t{blockIdx.x} * kTeams + warp / kWarps;

  for (int i = thread; i < kElements * kLanes; i += kTeamThreads) {
    const int element = i / kLanes, its_lane = i % kLanes;
    const int first = (element / Tile::kVector * kLanes + its_lane) * Tile::kVector;
    const int c = first + element % Tile::kVector;
    weights[element][its_lane] = c < width ? b.weight[c] : 0.0f;
  }
  __syncthreads();
  int64_t next = row;  // the first of the rows to be asked for, and their targets
  int32_t targets[kAtOnce]{};
  int place = 0;
  const auto look_up = [&] {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t r = next + j * step;
      if (with_sums && r < rows) targets[j] = b.target[r];
    }
  };
  const auto ask = [&] {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t r = next + j * step;
      if (r < rows) {
        auto& to = ahead.rows[place][j];
        copy_row<T, Tile>(to.z, b.z, r, width);
        copy_row<T, Tile>(to.d_out, b.d_out, r, width);
        if (with_sums || with_past) {
          copy_row<T, Tile>(to.more, with_sums ? b.d_sums : b.d_past, with_sums ? targets[j] : r,
                            width);
        }
        copy_async(&to.statistics[thread], reinterpret_cast<const float2*>(b.statistics) + r);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    place ^= 1;
    next += kAtOnce * step;
    look_up();
  };
  look_up();
  ask();
  ask();
  int turn = 0;
  const auto finish = [&]<int kRows>() {
    Tile g[kRows];
    float2 along[kRows], statistics[kRows];  // the latter: mean and 1 / deviation
    const auto has = [&](int k) { return kExact || Tile::column(k) < width; };
    // Read and normed where it is used: registers are what this kernel lacks.
    const auto z_of = [&](int j, int k, float(&z)[Tile::kVector]) {
      typename Rows::Piece piece{};
      if (has(k)) piece = ahead.rows[turn][j].z[k][thread];
#pragma unroll
      for (int i = 0; i < Tile::kVector; ++i)
        z[i] = to_float(piece.values[i]);
    };
    // Norms rows in 16 bits in one operation.
    const auto normed = [](float2 of_row, float z) {
      const auto [mean, inverse] = of_row;
      return sizeof(T) == 2 ? fmaf(z, inverse, -mean * inverse) : (z - mean) * inverse;
    };
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      const auto& from = ahead.rows[turn][j];
      statistics[j] = from.statistics[thread];
      along[j] = make_float2(0.0f, 0.0f);
#pragma unroll
      for (int k = 0; k < Tile::kChunks; ++k) {
        typename Rows::Piece d_out{}, d_sums{};
        if (has(k) && b.d_out != nullptr) d_out = from.d_out[k][thread];
        if (has(k) && with_sums) d_sums = from.more[k][thread];
#pragma unroll
        for (int i = 0; i < Tile::kVector; ++i) {
          g[j].x[k][i] = to_float(d_out.values[i]);
          if (kBeside == Beside::kSums || kBeside == Beside::kEither)
            g[j].x[k][i] += to_float(d_sums.values[i]);
        }
      }
      if (b.d_residual != nullptr) store_row<T>(b.d_residual, row + j * step, width, g[j]);
    }
#pragma unroll
    for (int k = 0; k < Tile::kChunks; ++k) {
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        float z[Tile::kVector];
        z_of(j, k, z);
#pragma unroll
        for (int i = 0; i < Tile::kVector; ++i) {
          const float x = has(k) ? normed(statistics[j], z[i]) : 0.0f;
          float& gradient = g[j].x[k][i];
          sums[0].x[k][i] += gradient * x;
          sums[1].x[k][i] += gradient;
          gradient *= weights[k * Tile::kVector + i][lane];
          along[j].x += gradient;
          along[j].y += gradient * x;
        }
      }
    }
    team_sum<kWarps>(along, partial, turn);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      // inverse (g - along.x - norm(z) along.y), the latter two over the width: linear in g and z.
      const auto [mean, inverse] = statistics[j];
      const float first = scale * along[j].x, second = scale * along[j].y;
      const float of_z = -second * inverse * inverse;
      const float rest = -inverse * (first - second * mean * inverse);
#pragma unroll
      for (int k = 0; k < Tile::kChunks; ++k) {
        float z[Tile::kVector];
        z_of(j, k, z);
        typename Rows::Piece past{};
        if (has(k) && with_past) past = ahead.rows[turn][j].more[k][thread];
#pragma unroll
        for (int i = 0; i < Tile::kVector; ++i) {
          float d = sizeof(T) == 2
                        ? fmaf(g[j].x[k][i], inverse, fmaf(z[i], of_z, rest))
                        : inverse * (g[j].x[k][i] - first - normed(statistics[j], z[i]) * second);
          if (kBeside == Beside::kPast || kBeside == Beside::kEither) d += to_float(past.values[i]);
          if (!has(k)) d = 0.0f;
          g[j].x[k][i] = d;
          sums[2].x[k][i] += d;
        }
      }
      store_row<T>(b.d_z, row + j * step, width, g[j]);
    }
  };
  for (; row < rows; row += kAtOnce * step, turn ^= 1) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    if (kAtOnce > 1 && row + step < rows) {
      finish.template operator()<kAtOnce>();
    } else {
      finish.template operator()<1>();
    }
    ask();
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  write_team_sums<kWarps>(sums, b.scratch + int64_t{blockIdx.x} * 3 * width,
                          reinterpret_cast<float*>(dynamic), width);
}

}  // namespace

void layer_norm_forward(const RowShape& shape, const NormForward& f, cudaStream_t stream) {
  if (f.addend != nullptr && f.residual != nullptr)
    throw std::runtime_error("layer_norm_forward: an addend and a residual");
  const int64_t items = f.groups.begin != nullptr ? f.groups.count : shape.rows;
  if (items == 0) return;
  dispatch_tile(shape, {f.z, f.addend, f.z_sum, f.residual, f.weight, f.bias, f.out, f.sums},
                [&]<class T, class Tile>() {
                  const int width = static_cast<int>(shape.width);
                  if constexpr (kHasRing<T, Tile>) {
                    const auto start = [&]<bool kExact, Added kAdded>() {
                      auto* kernel = &norm_forward_ring_kernel<T, Tile, kExact, kAdded>;
                      constexpr int kBytes = static_cast<int>(sizeof(ForwardRing<T, Tile>));
                      [[maybe_unused]] static const bool room =
                          make_room(kernel, kBytes, "layer_norm_forward");
                      const unsigned blocks = std::min<unsigned>(blocks_for(items), kRingBlocks);
                      kernel<<<blocks, kThreads, kBytes, stream>>>(static_cast<int>(items), width,
                                                                   f);
                    };
                    if (width != kWidth<Tile>) {
                      start.template operator()<false, Added::kEither>();
                    } else if (f.addend != nullptr) {
                      start.template operator()<true, Added::kBefore>();
                    } else if (f.residual != nullptr) {
                      start.template operator()<true, Added::kAfter>();
                    } else {
                      start.template operator()<true, Added::kNothing>();
                    }
                  } else {
                    norm_forward_kernel<T, Tile>
                        <<<blocks_for(items), kThreads, 0, stream>>>(shape.rows, width, f);
                  }
                  check_launch("layer_norm_forward");
                });
}

void layer_norm_backward(const RowShape& shape, const NormBackward& b, cudaStream_t stream) {
  static_assert(kTeamBlocks <= kColumnSumParts);
  dispatch_tile(shape, {b.d_out, b.d_sums, b.d_past, b.z, b.weight, b.d_residual, b.d_z},
                [&]<class T, class Tile>() {
                  constexpr int kWarps = kTeam<Tile>;
                  using Part = TeamTile<Tile::kVector, Tile::kChunks / kWarps, kWarps>;
                  constexpr int kBytes = static_cast<int>(sizeof(Ahead<T, Part>));
                  static_assert(kBytes >= 3 * Tile::kVector * Tile::kChunks * kWarpSize * 4);
                  const auto start = [&]<bool kExact, Beside kBeside>() {
                    auto* kernel = &norm_backward_kernel<T, Part, kWarps, kExact, kBeside>;
                    [[maybe_unused]] static const bool room =
                        make_room(kernel, kBytes, "layer_norm_backward");
                    kernel<<<kTeamBlocks, kTeamThreads, kBytes, stream>>>(
                        shape.rows, static_cast<int>(shape.width), b);
                  };
                  bool exact = false;
                  if constexpr (sizeof(T) == 2) {
                    exact = shape.width == kWidth<Tile>;
                    if (exact && b.d_sums != nullptr) {
                      start.template operator()<true, Beside::kSums>();
                    } else if (exact && b.d_past != nullptr) {
                      start.template operator()<true, Beside::kPast>();
                    } else if (exact) {
                      start.template operator()<true, Beside::kNothing>();
                    }
                  }
                  if (!exact) start.template operator()<false, Beside::kEither>();
                  check_launch("layer_norm_backward");
                });
  add_column_sums(b.scratch, {b.weight_sum, b.bias_sum, b.z_sum}, shape.width, stream, kTeamBlocks);
}

}  // namespace aifs::model::cuda
