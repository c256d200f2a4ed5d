// SPDX-License-Identifier: Apache-2.0
// Forward, the scores of a tile are asked for before the product of the tile before with its
// values, which runs while the exponentials are taken. Sums of weights go along.
//
// Backward, one kernel gives the gradients of queries and another those of keys and values, each
// sum in registers of one warpgroup from its first product to its last: seven products where five
// would do, but no sums that several blocks share. The second works on transposed scores: so
// weights are always left operands, from registers.
//
// ptxas keeps products in flight only where none is at the end of a loop's body.
#include "model/kernels/cuda/window_attention.h"

#include <algorithm>
#include <cmath>

#include "model/kernels/cuda/current_card.h"
#include "model/kernels/cuda/shared_room.h"
#include "model/kernels/cuda/tensor_map.h"
#include "model/kernels/cuda/window_tiles.cuh"

namespace aifs::model::cuda {

namespace {

constexpr float kLog2E = 1.44269504f;

// Own rows are queries, tiles keys and values.
template <int kGroups, int kTile>
struct Forward : Worker<Shape<kGroups, kTile, 1, false>> {
  using S = Shape<kGroups, kTile, 1, false>;
  using Base = Worker<S>;
  using Base::Base;
  // Exponents count from the greatest score of the first tile, until a row's powers in a lane add
  // up to more than this: finding the greatest of every tile would take a fifth of the
  // instructions.
  static constexpr float kTolerated = 4096.0f;

  float factor = this->task.scale * kLog2E;
  uint32_t query[1][4][4], weights[kTile / 16][4];
  float scores[kTile / 2], powers[kTile / 2], out[32];
  float top[2], sum[2], more[2], shrink[2];
  bool grows;

  __device__ void hide_unseen(int t) {
    if (!this->is_partial(t)) return;
    const Seen seen = this->seen_of(t);
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i)
      scores[i] = seen[i] ? scores[i] : -INFINITY;
  }

  __device__ void renew_top() {
    float most[2][2] = {{scores[0], scores[1]}, {scores[2], scores[3]}};
#pragma unroll
    for (int i = 4; i < kTile / 2; ++i)
      most[i / 2 % 2][i % 2] = fmaxf(most[i / 2 % 2][i % 2], scores[i]);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float m = fmaxf(most[h][0], most[h][1]);
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      m = fmaxf(m, top[h]);
      shrink[h] = exp2_of((top[h] - m) * factor);
      top[h] = m;
      sum[h] *= shrink[h];
    }
  }

  __device__ void weigh() {
    float parts[2][2] = {};
    const float shift[2] = {top[0] * factor, top[1] * factor};
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i) {
      const int h = i / 2 % 2;
      powers[i] = exp2_of(fmaf(scores[i], factor, -shift[h]));
      parts[h][i % 2] += powers[i];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h)
      more[h] = parts[h][0] + parts[h][1];
  }

  __device__ void shrink_out() {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      out[i] *= shrink[i / 2 % 2];
  }

  // Turns the scores that were asked for into powers.
  template <bool kFirst>
  __device__ void raise(int t) {
    hopper::pin(scores);
    hide_unseen(t);
    if constexpr (kFirst) renew_top();
    weigh();
    grows = false;
    if constexpr (!kFirst) {
      grows = __any_sync(~0u, fmaxf(more[0], more[1]) > kTolerated);
      if (grows) {
        renew_top();
        weigh();
      }
    }
    sum[0] += more[0];
    sum[1] += more[1];
  }
  __device__ void ask_for_scores() {
    this->await_tile();
    hopper::pin(scores);
    hopper::fence_products();
    this->multiply_tile(scores, query[0], this->tile(this->place.stage, 0));
  }
  __device__ void add(int stage) {
    if (grows) shrink_out();
    pack_operand<kTile / 2>(weights, powers);
    hopper::pin(out);
    hopper::fence_products();
    this->add_tile(out, weights, this->tile(stage, 1));
  }

  __device__ void walk() {
    if (this->last <= this->first) return;
    ask_for_scores();
    hopper::wait_products<0>();
    raise<true>(this->first);
    for (int t = this->first + 1; t < this->last; ++t) {
      const int before = this->place.stage;
      this->place.advance();
      ask_for_scores();
      add(before);
      hopper::wait_products<1>();
      raise<false>(t);
      hopper::wait_products<0>();
      hopper::pin(out);
      this->release(before);
    }
    add(this->place.stage);
    hopper::wait_products<0>();
    hopper::pin(out);
    this->release(this->place.stage);
    this->place.advance();
  }

  __device__ void run(int turn) {
    this->begin_turn(turn);
    this->take_own(query);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      out[i] = 0.0f;
    for (int h = 0; h < 2; ++h) {
      top[h] = -1e30f;
      sum[h] = 0.0f;
    }
    walk();
    this->end_turn();
    float inverse[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float all = sum_of_four(sum[h]);
      inverse[h] = 1.0f / all;
      const int r = this->row + 8 * h;
      if (this->q == 0 && r < this->task.rows)
        this->vector_of_head(this->task.log_sums)[r] = fmaf(top[h], factor, log2f(all));
    }
    this->store(this->task.outputs[0], out, inverse);
  }
};

// Own rows are queries, gradients of results and results, tiles keys and values. Writes deltas too.
template <int kGroups, int kTile>
struct QueryGradient : Worker<Shape<kGroups, kTile, 3, false>> {
  using S = Shape<kGroups, kTile, 3, false>;
  using Base = Worker<S>;
  using Base::Base;

  float factor = this->task.scale * kLog2E;
  uint32_t query[4][4], d_out[4][4], d_scores[kTile / 16][4];
  float scores[kTile / 2], powers[kTile / 2], d_weights[kTile / 2], d_query[32];
  float log_sum[2], delta[2];

  __device__ void take_rows() {
    uint32_t own[3][4][4];
    this->take_own(own);
    delta[0] = delta[1] = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        query[k][i] = own[0][k][i];
        d_out[k][i] = own[1][k][i];
        const float2 x = unpack(own[1][k][i]), y = unpack(own[2][k][i]);
        delta[i % 2] = fmaf(x.x, y.x, fmaf(x.y, y.y, delta[i % 2]));
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      delta[h] = sum_of_four(delta[h]);
      const int r = this->row + 8 * h;
      const bool there = r < this->task.rows;
      log_sum[h] = there ? this->vector_of_head(this->task.log_sums)[r] : 0.0f;
      if (there && this->q == 0) this->vector_of_head(this->task.deltas)[r] = delta[h];
    }
  }

  __device__ void ask_for_scores() {
    this->await_tile();
    hopper::pin(scores);
    hopper::fence_products();
    this->multiply_tile(scores, query, this->tile(this->place.stage, 0));
  }
  __device__ void ask_for_d_weights() {
    hopper::pin(d_weights);
    hopper::fence_products();
    this->multiply_tile(d_weights, d_out, this->tile(this->place.stage, 1));
  }

  // Turns scores into weights, as powers of two: so that the next scores may be asked for.
  __device__ void weigh(int t) {
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i)
      powers[i] = exp2_of(fmaf(scores[i], factor, -log_sum[i / 2 % 2]));
    if (this->is_partial(t)) {
      const Seen seen = this->seen_of(t);
#pragma unroll
      for (int i = 0; i < kTile / 2; ++i)
        powers[i] = seen[i] ? powers[i] : 0.0f;
    }
  }
  // From the weights and their gradients, those of scores.
  __device__ void differentiate() {
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i)
      powers[i] = powers[i] * (d_weights[i] - delta[i / 2 % 2]);
    pack_operand<kTile / 2>(d_scores, powers);
  }
  __device__ void add(int stage) {
    hopper::pin(d_query);
    hopper::fence_products();
    this->add_tile(d_query, d_scores, this->tile(stage, 0));
  }

  __device__ void walk() {
    if (this->last <= this->first) return;
    ask_for_scores();
    ask_for_d_weights();
    hopper::wait_products<1>();
    hopper::pin(scores);
    weigh(this->first);
    hopper::wait_products<0>();
    hopper::pin(d_weights);
    for (int t = this->first + 1; t < this->last; ++t) {
      const int before = this->place.stage;
      this->place.advance();
      ask_for_scores();
      differentiate();
      ask_for_d_weights();
      add(before);
      hopper::wait_products<2>();
      hopper::pin(scores);
      weigh(t);
      hopper::wait_products<0>();
      hopper::pin(d_weights);
      hopper::pin(d_query);
      this->release(before);
    }
    differentiate();
    add(this->place.stage);
    hopper::wait_products<0>();
    hopper::pin(d_query);
    this->release(this->place.stage);
    this->place.advance();
  }

  __device__ void run(int turn) {
    this->begin_turn(turn);
    take_rows();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      d_query[i] = 0.0f;
    walk();
    this->end_turn();
    this->store(this->task.outputs[0], d_query, {this->task.scale, this->task.scale});
  }
};

// Own rows are keys and values, tiles queries and gradients of results.
template <int kGroups, int kTile>
struct KeyGradient : Worker<Shape<kGroups, kTile, 2, true>> {
  using S = Shape<kGroups, kTile, 2, true>;
  using Base = Worker<S>;
  using Base::Base;

  float factor = this->task.scale * kLog2E;
  uint32_t own[2][4][4], weights[kTile / 16][4], d_scores[kTile / 16][4];
  float scores[kTile / 2], d_weights[kTile / 2], d_key[32], d_value[32];
  Seen seen;  // of a tile of which not all is

  __device__ void ask_for_scores() {
    this->await_tile();
    hopper::pin(scores);
    hopper::pin(d_weights);
    hopper::fence_products();
    this->multiply_tile(scores, own[0], this->tile(this->place.stage, 0));
    this->multiply_tile(d_weights, own[1], this->tile(this->place.stage, 1));
  }

  // Weights take the place of scores.
  __device__ void weigh(int t) {
    const float* log_sums = this->room.vector(this->place.stage, 0) + 2 * this->q;
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) {
      const float2 log_sum = hopper::load_pair(log_sums + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& x = scores[4 * j + i];
        x = exp2_of(fmaf(x, factor, -(i % 2 == 0 ? log_sum.x : log_sum.y)));
      }
    }
    if (this->is_partial(t)) {
      seen = this->seen_of(t);
#pragma unroll
      for (int i = 0; i < kTile / 2; ++i)
        scores[i] = seen[i] ? scores[i] : 0.0f;
    }
  }

  // Gradients of scores take the place of those of weights.
  __device__ void differentiate_scores(int t) {
    const float* deltas = this->room.vector(this->place.stage, 1) + 2 * this->q;
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j) {
      const float2 delta = hopper::load_pair(deltas + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& x = d_weights[4 * j + i];
        x = scores[4 * j + i] * (x - (i % 2 == 0 ? delta.x : delta.y));
      }
    }
    if (this->is_partial(t)) {  // there may be no delta
#pragma unroll
      for (int i = 0; i < kTile / 2; ++i)
        d_weights[i] = seen[i] ? d_weights[i] : 0.0f;
    }
  }

  __device__ void add_values(int stage) {
    hopper::pin(d_value);
    hopper::fence_products();
    this->add_tile(d_value, weights, this->tile(stage, 1));
  }
  __device__ void add_keys(int stage) {
    hopper::pin(d_key);
    hopper::fence_products();
    this->add_tile(d_key, d_scores, this->tile(stage, 0));
  }
  // Weights of the tile that was asked for; all else is done then.
  template <bool kFirst>
  __device__ void find_weights(int t, int before) {
    hopper::wait_products<kFirst ? 1 : 2>();
    hopper::pin(scores);
    weigh(t);
    hopper::wait_products<0>();
    hopper::pin(d_weights);
    hopper::pin(d_key);
    hopper::pin(d_value);
    if (!kFirst) this->release(before);
  }
  __device__ void start_adding(int t) {
    pack_operand<kTile / 2>(weights, scores);
    add_values(this->place.stage);
    differentiate_scores(t);
    pack_operand<kTile / 2>(d_scores, d_weights);
  }

  __device__ void walk() {
    if (this->last <= this->first) return;
    ask_for_scores();
    find_weights<true>(this->first, 0);
    for (int t = this->first; t + 1 < this->last; ++t) {
      start_adding(t);
      const int before = this->place.stage;
      this->place.advance();
      ask_for_scores();
      add_keys(before);
      find_weights<false>(t + 1, before);
    }
    start_adding(this->last - 1);
    add_keys(this->place.stage);
    hopper::wait_products<0>();
    hopper::pin(d_key);
    hopper::pin(d_value);
    this->release(this->place.stage);
    this->place.advance();
  }

  __device__ void run(int turn) {
    this->begin_turn(turn);
    this->take_own(own);
#pragma unroll
    for (int i = 0; i < 32; ++i)
      d_key[i] = d_value[i] = 0.0f;
    walk();
    this->end_turn();
    this->store(this->task.outputs[0], d_key, {this->task.scale, this->task.scale});
    this->store(this->task.outputs[1], d_value, {1.0f, 1.0f});
  }
};

template <class Job>
__global__ void __launch_bounds__(Job::S::kThreads, 1)
    window_kernel(const __grid_constant__ Maps maps, const __grid_constant__ Task task) {
  using S = typename Job::S;
  extern __shared__ uint8_t dynamic[];
  const Room<S> room(
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024));
  // Known to be the same in a warp: else much is computed lane by lane.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpSize, 0);
  if (threadIdx.x == 0) room.signals.init();
  __syncthreads();
  if (warp >= S::kGroups * kWarpsPerGroup) {
    hopper::give_registers<24>();
    if (threadIdx.x == S::kConsumers) feed<S>(maps, task, room);
    return;
  }
  hopper::take_registers<S::kRegisters>();
  Job job(task, room, warp);
  const int turns = turns_of<S>(task);
  for (int turn = static_cast<int>(blockIdx.x); turn < turns; turn += static_cast<int>(gridDim.x))
    job.run(turn);
}

// Describes rows of heads, in boxes of so many of one head.
CUtensorMap map_of(const HeadRows& rows, const WindowAttention& a, int box) {
  return make_map<3>(
      rows.data, {a.heads * kHeadWidth, a.rows, a.batches},
      {rows.row_stride, a.batches > 1 ? rows.batch_stride : a.rows * rows.row_stride},
      {kHeadWidth, static_cast<cuuint32_t>(box), 1});
}

Output output_of(const HeadRows& rows) {
  return {static_cast<Bf16*>(rows.data), rows.row_stride, rows.batch_stride};
}

Task task_of(const WindowAttention& a) {
  Task task;
  task.rows = static_cast<int>(a.rows);
  task.heads = static_cast<int>(a.heads);
  task.batches = static_cast<int>(a.batches);
  task.window = static_cast<int>(std::min(a.window, a.rows));
  task.padded = static_cast<int>(padded_rows(a.rows));
  task.scale = 1.0f / std::sqrt(static_cast<float>(kHeadWidth));
  task.log_sums = a.log_sums;
  return task;
}

template <class Job>
void launch(const Maps& maps, const Task& task, cudaStream_t stream) {
  using S = typename Job::S;
  auto* kernel = &window_kernel<Job>;
  [[maybe_unused]] static const bool room = make_room(kernel, Room<S>::kBytes, "window_attention");
  const int blocks = std::min(current_card().processors, turns_of<S>(task));
  kernel<<<static_cast<unsigned>(blocks), S::kThreads, Room<S>::kBytes, stream>>>(maps, task);
  check_launch("window_attention");
}

template <int kGroups, int kTile>
void launch_forward(const WindowAttention& a, cudaStream_t stream) {
  Task task = task_of(a);
  task.outputs[0] = output_of(a.out);
  Maps maps{};
  maps.own[0] = map_of(a.query, a, kGroupRows);
  maps.tiles[0] = map_of(a.key, a, kTile);
  maps.tiles[1] = map_of(a.value, a, kTile);
  launch<Forward<kGroups, kTile>>(maps, task, stream);
}

template <int kGroups, int kTile>
void launch_query_gradient(const WindowAttention& a, const WindowAttentionBackward& b,
                           cudaStream_t stream) {
  Task task = task_of(a);
  task.deltas = b.deltas;
  task.outputs[0] = output_of(b.d_query);
  Maps maps{};
  maps.own[0] = map_of(a.query, a, kGroupRows);
  maps.own[1] = map_of(b.d_out, a, kGroupRows);
  maps.own[2] = map_of(a.out, a, kGroupRows);
  maps.tiles[0] = map_of(a.key, a, kTile);
  maps.tiles[1] = map_of(a.value, a, kTile);
  launch<QueryGradient<kGroups, kTile>>(maps, task, stream);
}

template <int kGroups, int kTile>
void launch_key_gradient(const WindowAttention& a, const WindowAttentionBackward& b,
                         cudaStream_t stream) {
  Task task = task_of(a);
  task.deltas = b.deltas;
  task.outputs[0] = output_of(b.d_key);
  task.outputs[1] = output_of(b.d_value);
  Maps maps{};
  maps.own[0] = map_of(a.key, a, kGroupRows);
  maps.own[1] = map_of(a.value, a, kGroupRows);
  maps.tiles[0] = map_of(a.query, a, kTile);
  maps.tiles[1] = map_of(b.d_out, a, kTile);
  launch<KeyGradient<kGroups, kTile>>(maps, task, stream);
}

}  // namespace

bool window_attention_supported(int64_t head_width) {
  return head_width == kHeadWidth && current_card().major == 9 && encode() != nullptr;
}

void window_attention(const WindowAttention& a, cudaStream_t stream) {
  if (a.rows == 0 || a.heads == 0 || a.batches == 0) return;
  launch_forward<3, 64>(a, stream);
}

void window_attention_backward(const WindowAttention& a, const WindowAttentionBackward& b,
                               cudaStream_t stream) {
  if (a.rows == 0 || a.heads == 0 || a.batches == 0) return;
  launch_query_gradient<2, 64>(a, b, stream);
  launch_key_gradient<2, 64>(a, b, stream);
}

}  // namespace aifs::model::cuda
