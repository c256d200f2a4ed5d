// SPDX-License-Identifier: Apache-2.0
// A lane holds 16 bytes of one head, so width / kVector lanes share a head, and a warp works on a
// slice of 32 such pieces of a node's row. Lanes of a head share the edge features too: lane l has
// features l, l + lanes, ... (kFeatures of them at most).
#include "model/kernels/cuda/graph_attention.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

constexpr int kMostFeatures = 16;

template <class T>
constexpr int kVectorOf = 16 / static_cast<int>(sizeof(T));

// Returns where a warp and a lane are in the rows of nodes.
template <class T>
struct Place {
  int64_t node;
  int lanes, lane;  // of a head, and this one's number
  int head, column;
  bool active;

  __device__ Place(const AttentionShape& s, int slices) {
    const int64_t warp = global_warp();
    node = warp / slices;
    lanes = s.width / kVectorOf<T>;
    column =
        (static_cast<int>(warp % slices) * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize) *
        kVectorOf<T>;
    active = column < s.heads * s.width;
    head = active ? column / s.width : 0;
    lane = static_cast<int>(threadIdx.x) % lanes;
  }
};

// A lane's piece of a row, in fp32.
template <class T>
struct Piece {
  static constexpr int kVector = kVectorOf<T>;
  float x[kVector];

  __device__ void load(const void* rows, int64_t row, int row_width, int column, bool active) {
    Pack<T, kVector> pack{};
    if (active) {
      pack = *reinterpret_cast<const Pack<T, kVector>*>(static_cast<const T*>(rows) +
                                                        row * row_width + column);
    }
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      x[i] = to_float(pack.values[i]);
  }
  __device__ void store(void* rows, int64_t row, int row_width, int column, bool active,
                        float scale = 1.0f) const {
    Pack<T, kVector> pack;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      pack.values[i] = from_float<T>(x[i] * scale);
    if (active) {
      *reinterpret_cast<Pack<T, kVector>*>(static_cast<T*>(rows) + row * row_width + column) = pack;
    }
  }
  __device__ float dot(const Piece& other) const {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      sum += x[i] * other.x[i];
    return sum;
  }
  // this = this * keep + factor * other
  __device__ void blend(float keep, float factor, const Piece& other) {
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      x[i] = x[i] * keep + factor * other.x[i];
  }
};

// A lane's share of a narrow row of edge features.
template <class T, int kFeatures>
struct Features {
  float x[kFeatures];

  __device__ void load(const T* row, int width, int lane, int lanes) {
#pragma unroll
    for (int i = 0; i < kFeatures; ++i) {
      const int f = lane + i * lanes;
      x[i] = f < width ? to_float(row[f]) : 0.0f;
    }
  }
  __device__ void store(T* row, int width, int lane, int lanes, float scale = 1.0f) const {
#pragma unroll
    for (int i = 0; i < kFeatures; ++i) {
      const int f = lane + i * lanes;
      if (f < width) row[f] = from_float<T>(x[i] * scale);
    }
  }
  __device__ float dot(const Features& other) const {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kFeatures; ++i)
      sum += x[i] * other.x[i];
    return sum;
  }
  __device__ void blend(float keep, float factor, const Features& other) {
#pragma unroll
    for (int i = 0; i < kFeatures; ++i)
      x[i] = x[i] * keep + factor * other.x[i];
  }
};

// Sum over the lanes of a head; all lanes of the warp take part.
__device__ inline float head_sum(float value, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

template <class T, int kFeatures>
__global__ void __launch_bounds__(kThreads)
    attention_forward_kernel(AttentionShape s, int slices, AttentionForward f) {
  const Place<T> p(s, slices);
  if (p.node >= s.targets) return;
  const int row_width = s.heads * s.width;
  const int64_t on_edges = (p.node * s.heads + p.head) * s.edge_width;
  Piece<T> query, sum{};
  Features<T, kFeatures> query_on_edges, edge_sum{};
  query.load(f.query, p.node, row_width, p.column, p.active);
  query_on_edges.load(static_cast<const T*>(f.query_on_edges) + on_edges, s.edge_width, p.lane,
                      p.lanes);
  float largest = -INFINITY, total = 0.0f;
  const int32_t end = f.target_begin[p.node + 1];
#pragma unroll 2
  for (int32_t e = f.target_begin[p.node]; e < end; ++e) {
    const int64_t j = f.source[e];
    Piece<T> key, value;
    Features<T, kFeatures> features;
    key.load(f.key, j, row_width, p.column, p.active);
    value.load(f.value, j, row_width, p.column, p.active);
    features.load(static_cast<const T*>(f.features) + int64_t{e} * s.edge_width, s.edge_width,
                  p.lane, p.lanes);
    const float score = s.scale * head_sum(query.dot(key) + query_on_edges.dot(features), p.lanes);
    const float higher = fmaxf(largest, score);
    const float keep = __expf(largest - higher), weight = __expf(score - higher);
    total = total * keep + weight;
    sum.blend(keep, weight, value);
    edge_sum.blend(keep, weight, features);
    largest = higher;
  }
  const float scale = total > 0.0f ? 1.0f / total : 0.0f;
  sum.store(f.nodes, p.node, row_width, p.column, p.active, scale);
  if (!p.active) return;
  edge_sum.store(static_cast<T*>(f.edges) + on_edges, s.edge_width, p.lane, p.lanes, scale);
  if (p.lane == 0) f.log_sum[p.node * s.heads + p.head] = largest + logf(total);
}

// Gradients of queries, and of each edge and head its weight and the gradient of its unscaled
// score.
template <class T, int kFeatures>
__global__ void __launch_bounds__(kThreads)
    attention_targets_kernel(AttentionShape s, int slices, AttentionBackward b) {
  const Place<T> p(s, slices);
  if (p.node >= s.targets) return;
  const AttentionForward& f = b.forward;
  const int row_width = s.heads * s.width;
  const int64_t on_edges = (p.node * s.heads + p.head) * s.edge_width;
  Piece<T> query, d_nodes, d_query{}, other;
  Features<T, kFeatures> query_on_edges, d_edges, d_query_on_edges{}, narrow;
  query.load(f.query, p.node, row_width, p.column, p.active);
  d_nodes.load(b.d_nodes, p.node, row_width, p.column, p.active);
  other.load(f.nodes, p.node, row_width, p.column, p.active);
  query_on_edges.load(static_cast<const T*>(f.query_on_edges) + on_edges, s.edge_width, p.lane,
                      p.lanes);
  d_edges.load(static_cast<const T*>(b.d_edges) + on_edges, s.edge_width, p.lane, p.lanes);
  narrow.load(static_cast<const T*>(f.edges) + on_edges, s.edge_width, p.lane, p.lanes);
  const float mean = head_sum(d_nodes.dot(other) + d_edges.dot(narrow), p.lanes);
  const float log_sum = f.log_sum[p.node * s.heads + p.head];
  const int32_t end = f.target_begin[p.node + 1];
#pragma unroll 2
  for (int32_t e = f.target_begin[p.node]; e < end; ++e) {
    const int64_t j = f.source[e];
    Piece<T> key, value;
    Features<T, kFeatures> features;
    key.load(f.key, j, row_width, p.column, p.active);
    value.load(f.value, j, row_width, p.column, p.active);
    features.load(static_cast<const T*>(f.features) + int64_t{e} * s.edge_width, s.edge_width,
                  p.lane, p.lanes);
    const float score = s.scale * head_sum(query.dot(key) + query_on_edges.dot(features), p.lanes);
    const float d_weight = head_sum(d_nodes.dot(value) + d_edges.dot(features), p.lanes);
    const float weight = __expf(score - log_sum);
    const float d_score = s.scale * weight * (d_weight - mean);  // of the score before its scale
    d_query.blend(1.0f, d_score, key);
    d_query_on_edges.blend(1.0f, d_score, features);
    if (p.active && p.lane == 0) {
      reinterpret_cast<float2*>(b.weights)[int64_t{e} * s.heads + p.head] =
          make_float2(weight, d_score);
    }
  }
  d_query.store(b.d_query, p.node, row_width, p.column, p.active);
  if (p.active) {
    d_query_on_edges.store(static_cast<T*>(b.d_query_on_edges) + on_edges, s.edge_width, p.lane,
                           p.lanes);
  }
}

// Gradients of keys and values, from the targets of a source's edges.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_sources_kernel(AttentionShape s, int slices, AttentionBackward b) {
  const Place<T> p(s, slices);
  if (p.node >= s.sources) return;
  const int row_width = s.heads * s.width;
  Piece<T> d_key{}, d_value{};
  const int32_t end = b.source_begin[p.node + 1];
#pragma unroll 2
  for (int32_t k = b.source_begin[p.node]; k < end; ++k) {
    const int64_t e = b.source_edges[k], i = b.target[e];
    const float2 weight = reinterpret_cast<const float2*>(b.weights)[e * s.heads + p.head];
    Piece<T> query, d_nodes;
    query.load(b.forward.query, i, row_width, p.column, p.active);
    d_nodes.load(b.d_nodes, i, row_width, p.column, p.active);
    d_key.blend(1.0f, weight.y, query);
    d_value.blend(1.0f, weight.x, d_nodes);
  }
  d_key.store(b.d_key, p.node, row_width, p.column, p.active);
  d_value.store(b.d_value, p.node, row_width, p.column, p.active);
}

// Gradients of edge features: a thread sums one feature of one edge over the heads.
template <class T>
__global__ void __launch_bounds__(kThreads)
    attention_features_kernel(AttentionShape s, AttentionBackward b) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= s.edges * s.edge_width) return;
  const int64_t e = at / s.edge_width;
  const int64_t first = b.target[e] * int64_t{s.heads} * s.edge_width + at % s.edge_width;
  const T* query = static_cast<const T*>(b.forward.query_on_edges) + first;
  const T* d_edges = static_cast<const T*>(b.d_edges) + first;
  float sum = 0.0f;
  for (int h = 0; h < s.heads; ++h) {
    const float2 weight = reinterpret_cast<const float2*>(b.weights)[e * s.heads + h];
    sum += weight.y * to_float(query[h * s.edge_width]);
    sum += weight.x * to_float(d_edges[h * s.edge_width]);
  }
  static_cast<T*>(b.d_features)[at] = from_float<T>(sum);
}

int vector_of(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : 8;
}

// Calls launch.template operator()<T, kFeatures>(slices).
template <class Launch>
void dispatch(const AttentionShape& s, Launch&& launch) {
  const int vector = vector_of(s.type), lanes = s.width / vector;
  const int per_slice = kWarpSize * vector;
  const int slices = (s.heads * s.width + per_slice - 1) / per_slice;
  const int features = (s.edge_width + lanes - 1) / lanes;
  const auto with_type = [&]<class T>(T) {
    if (features <= 2) return launch.template operator()<T, 2>(slices);
    if (features <= 4) return launch.template operator()<T, 4>(slices);
    return launch.template operator()<T, kMostFeatures>(slices);
  };
  dispatch_type(s.type, with_type);
}

}  // namespace

bool attention_supported(const AttentionShape& s) {
  const int vector = vector_of(s.type), lanes = s.width / vector;
  return s.width % vector == 0 && lanes >= 1 && lanes <= kWarpSize && (lanes & (lanes - 1)) == 0 &&
         s.edge_width <= lanes * kMostFeatures;
}

void attention_forward(const AttentionShape& s, const AttentionForward& f, cudaStream_t stream) {
  if (s.targets == 0) return;
  dispatch(s, [&]<class T, int kFeatures>(int slices) {
    attention_forward_kernel<T, kFeatures>
        <<<blocks_for(s.targets * slices), kThreads, 0, stream>>>(s, slices, f);
    check_launch("attention_forward");
  });
}

void attention_backward(const AttentionShape& s, const AttentionBackward& b, cudaStream_t stream) {
  dispatch(s, [&]<class T, int kFeatures>(int slices) {
    if (s.targets > 0) {
      attention_targets_kernel<T, kFeatures>
          <<<blocks_for(s.targets * slices), kThreads, 0, stream>>>(s, slices, b);
      check_launch("attention_targets");
    }
    if (s.sources > 0) {
      attention_sources_kernel<T>
          <<<blocks_for(s.sources * slices), kThreads, 0, stream>>>(s, slices, b);
      check_launch("attention_sources");
    }
    if (s.edges == 0 || s.edge_width == 0) return;
    const auto blocks = static_cast<unsigned>((s.edges * s.edge_width + kThreads - 1) / kThreads);
    attention_features_kernel<T><<<blocks, kThreads, 0, stream>>>(s, b);
    check_launch("attention_features");
  });
}

}  // namespace aifs::model::cuda
