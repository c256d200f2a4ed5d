// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/graph_attention.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "model/base/precision.h"
#include "model/kernels/edge_index_holder.h"
#include "model/kernels/graph_attention_cuda.h"
#include "model/kernels/simd.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 64;  // nodes per piece of work of a thread

#define AIFS_INLINE __attribute__((always_inline)) inline

// Raw pointers of one call. Rows of nodes are heads * width wide, of edges edge_width.
template <class T>
struct View {
  int64_t heads, width, edge_width;
  T scale;
  const int32_t *source, *target, *target_begin, *source_begin, *source_edges;
  const T *query, *query_on_edges, *key, *value, *features;
  T* alpha;                    // (M, H)
  T *nodes, *edges;            // forward results
  const T *g_nodes, *g_edges;  // their gradients
  T* g_score;                  // (M, H)
  T *g_query, *g_query_on_edges, *g_key, *g_value, *g_features;
};

// Eight running sums, so that the compiler may use vectors without reordering a sum.
template <class T>
AIFS_INLINE T dot(const T* a, const T* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  T lanes[kLanes] = {};
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l)
      lanes[l] += a[c + l] * b[c + l];
  }
  T sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
          ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  for (; c < n; ++c)
    sum += a[c] * b[c];
  return sum;
}

template <class T>
AIFS_INLINE void add_scaled(T* sum, T factor, const T* row, int64_t n) {
  for (int64_t c = 0; c < n; ++c)
    sum[c] += factor * row[c];
}

template <class T>
AIFS_INLINE void clear(T* row, int64_t n) {
  for (int64_t c = 0; c < n; ++c)
    row[c] = 0;
}

// alpha = score - largest score of its target and head; the exponential is taken outside.
template <class T>
AIFS_INLINE void scores_body(const View<T>& v, int64_t first, int64_t last) {
  const int64_t row = v.heads * v.width, edge_row = v.heads * v.edge_width;
  for (int64_t i = first; i < last; ++i) {
    const int32_t begin = v.target_begin[i], end = v.target_begin[i + 1];
    for (int32_t e = begin; e < end; ++e) {
      const T* key = v.key + v.source[e] * row;
      const T* features = v.features + e * v.edge_width;
      for (int64_t h = 0; h < v.heads; ++h) {
        v.alpha[e * v.heads + h] =
            v.scale *
            (dot(v.query + i * row + h * v.width, key + h * v.width, v.width) +
             dot(v.query_on_edges + i * edge_row + h * v.edge_width, features, v.edge_width));
      }
    }
    for (int64_t h = 0; h < v.heads; ++h) {
      T largest = -std::numeric_limits<T>::infinity();
      for (int32_t e = begin; e < end; ++e)
        largest = std::max(largest, v.alpha[e * v.heads + h]);
      for (int32_t e = begin; e < end; ++e)
        v.alpha[e * v.heads + h] -= largest;
    }
  }
}

// Divides by the sums, and adds up values and features with these weights.
template <class T>
AIFS_INLINE void sums_body(const View<T>& v, int64_t first, int64_t last) {
  const int64_t row = v.heads * v.width, edge_row = v.heads * v.edge_width;
  for (int64_t i = first; i < last; ++i) {
    const int32_t begin = v.target_begin[i], end = v.target_begin[i + 1];
    clear(v.nodes + i * row, row);
    clear(v.edges + i * edge_row, edge_row);
    for (int64_t h = 0; h < v.heads; ++h) {
      T sum = 0;
      for (int32_t e = begin; e < end; ++e)
        sum += v.alpha[e * v.heads + h];
      for (int32_t e = begin; e < end; ++e)
        v.alpha[e * v.heads + h] /= sum;
    }
    for (int32_t e = begin; e < end; ++e) {
      const T* value = v.value + v.source[e] * row;
      for (int64_t h = 0; h < v.heads; ++h) {
        const T alpha = v.alpha[e * v.heads + h];
        add_scaled(v.nodes + i * row + h * v.width, alpha, value + h * v.width, v.width);
        add_scaled(v.edges + i * edge_row + h * v.edge_width, alpha, v.features + e * v.edge_width,
                   v.edge_width);
      }
    }
  }
}

// Gradients of unscaled scores, queries and edge features, one target at a time.
template <class T>
AIFS_INLINE void target_gradients_body(const View<T>& v, int64_t first, int64_t last) {
  const int64_t row = v.heads * v.width, edge_row = v.heads * v.edge_width;
  for (int64_t i = first; i < last; ++i) {
    const int32_t begin = v.target_begin[i], end = v.target_begin[i + 1];
    const T *g_nodes = v.g_nodes + i * row, *g_edges = v.g_edges + i * edge_row;
    clear(v.g_query + i * row, row);
    clear(v.g_query_on_edges + i * edge_row, edge_row);
    for (int32_t e = begin; e < end; ++e) {
      const T *value = v.value + v.source[e] * row, *features = v.features + e * v.edge_width;
      for (int64_t h = 0; h < v.heads; ++h) {
        v.g_score[e * v.heads + h] = dot(g_nodes + h * v.width, value + h * v.width, v.width) +
                                     dot(g_edges + h * v.edge_width, features, v.edge_width);
      }
    }
    for (int64_t h = 0; h < v.heads; ++h) {
      T mean = 0;
      for (int32_t e = begin; e < end; ++e)
        mean += v.alpha[e * v.heads + h] * v.g_score[e * v.heads + h];
      for (int32_t e = begin; e < end; ++e) {
        T& g = v.g_score[e * v.heads + h];
        g = v.scale * v.alpha[e * v.heads + h] * (g - mean);
      }
    }
    for (int32_t e = begin; e < end; ++e) {
      const T *key = v.key + v.source[e] * row, *features = v.features + e * v.edge_width;
      T* g_features = v.g_features + e * v.edge_width;
      clear(g_features, v.edge_width);
      for (int64_t h = 0; h < v.heads; ++h) {
        const T g = v.g_score[e * v.heads + h];
        const int64_t at = i * edge_row + h * v.edge_width;
        add_scaled(v.g_query + i * row + h * v.width, g, key + h * v.width, v.width);
        add_scaled(v.g_query_on_edges + at, g, features, v.edge_width);
        add_scaled(g_features, g, v.query_on_edges + at, v.edge_width);
        add_scaled(g_features, v.alpha[e * v.heads + h], v.g_edges + at, v.edge_width);
      }
    }
  }
}

// Gradients of keys and values, one source at a time.
template <class T>
AIFS_INLINE void source_gradients_body(const View<T>& v, int64_t first, int64_t last) {
  const int64_t row = v.heads * v.width;
  for (int64_t j = first; j < last; ++j) {
    clear(v.g_key + j * row, row);
    clear(v.g_value + j * row, row);
    for (int32_t k = v.source_begin[j]; k < v.source_begin[j + 1]; ++k) {
      const int64_t e = v.source_edges[k], i = v.target[e];
      for (int64_t h = 0; h < v.heads; ++h) {
        const int64_t at = h * v.width;
        add_scaled(v.g_key + j * row + at, v.g_score[e * v.heads + h], v.query + i * row + at,
                   v.width);
        add_scaled(v.g_value + j * row + at, v.alpha[e * v.heads + h], v.g_nodes + i * row + at,
                   v.width);
      }
    }
  }
}

#define AIFS_DEFINE_ATTENTION_KERNELS(T)                                           \
  AIFS_SIMD void scores(const View<T>& v, int64_t first, int64_t last) {           \
    scores_body<T>(v, first, last);                                                \
  }                                                                                \
  AIFS_SIMD void sums(const View<T>& v, int64_t first, int64_t last) {             \
    sums_body<T>(v, first, last);                                                  \
  }                                                                                \
  AIFS_SIMD void target_gradients(const View<T>& v, int64_t first, int64_t last) { \
    target_gradients_body<T>(v, first, last);                                      \
  }                                                                                \
  AIFS_SIMD void source_gradients(const View<T>& v, int64_t first, int64_t last) { \
    source_gradients_body<T>(v, first, last);                                      \
  }

AIFS_DEFINE_ATTENTION_KERNELS(float)
AIFS_DEFINE_ATTENTION_KERNELS(double)
#undef AIFS_DEFINE_ATTENTION_KERNELS
#undef AIFS_INLINE

template <class T>
View<T> view_of(const AttentionInputs& in, int64_t heads, const EdgeIndex& edges) {
  View<T> v{};
  v.heads = heads;
  v.width = in.query.size(1) / heads;
  v.edge_width = in.edge_features.size(1);
  v.scale = static_cast<T>(in.scale);
  v.source = edges.source.const_data_ptr<int32_t>();
  v.target = edges.target.const_data_ptr<int32_t>();
  v.target_begin = edges.target_begin.const_data_ptr<int32_t>();
  v.source_begin = edges.source_begin.const_data_ptr<int32_t>();
  v.source_edges = edges.source_edges.const_data_ptr<int32_t>();
  v.query = in.query.const_data_ptr<T>();
  v.query_on_edges = in.query_on_edges.const_data_ptr<T>();
  v.key = in.key.const_data_ptr<T>();
  v.value = in.value.const_data_ptr<T>();
  v.features = in.edge_features.const_data_ptr<T>();
  return v;
}

struct GraphAttention : torch::autograd::Function<GraphAttention> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& query,
                               const at::Tensor& query_on_edges, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& edge_features,
                               double scale, int64_t heads, const EdgeIndexPtr& edges) {
    const AttentionInputs in{query.contiguous(), query_on_edges.contiguous(), key.contiguous(),
                             value.contiguous(), edge_features.contiguous(),  scale};
    at::Tensor alpha = at::empty({edges->num_edges, heads}, query.options());
    at::Tensor nodes = at::empty_like(in.query), sums_of_edges = at::empty_like(in.query_on_edges);
    AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "graph_attention", [&] {
      View<scalar_t> v = view_of<scalar_t>(in, heads, *edges);
      v.alpha = alpha.data_ptr<scalar_t>();
      v.nodes = nodes.data_ptr<scalar_t>();
      v.edges = sums_of_edges.data_ptr<scalar_t>();
      at::parallel_for(0, edges->num_targets, kGrain,
                       [&](int64_t first, int64_t last) { scores(v, first, last); });
      alpha.exp_();
      at::parallel_for(0, edges->num_targets, kGrain,
                       [&](int64_t first, int64_t last) { sums(v, first, last); });
    });
    ctx->save_for_backward(
        {in.query, in.query_on_edges, in.key, in.value, in.edge_features, alpha});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["edges"] = hold(edges);
    return {nodes, sums_of_edges};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const AttentionInputs in{saved[0], saved[1], saved[2],
                             saved[3], saved[4], ctx->saved_data["scale"].toDouble()};
    const at::Tensor& alpha = saved[5];
    const int64_t heads = ctx->saved_data["heads"].toInt();
    const EdgeIndexPtr edges = held_edges(ctx->saved_data["edges"]);
    const at::Tensor g_nodes = gradient_or_zeros(gradients[0], in.query);
    const at::Tensor g_edges = gradient_or_zeros(gradients[1], in.query_on_edges);
    at::Tensor g_score = at::empty_like(alpha);
    at::Tensor g_query = at::empty_like(in.query), g_key = at::empty_like(in.key);
    at::Tensor g_query_on_edges = at::empty_like(in.query_on_edges);
    at::Tensor g_value = at::empty_like(in.value), g_features = at::empty_like(in.edge_features);
    AT_DISPATCH_FLOATING_TYPES(alpha.scalar_type(), "graph_attention_backward", [&] {
      View<scalar_t> v = view_of<scalar_t>(in, heads, *edges);
      v.alpha = const_cast<scalar_t*>(alpha.const_data_ptr<scalar_t>());  // only read
      v.g_nodes = g_nodes.const_data_ptr<scalar_t>();
      v.g_edges = g_edges.const_data_ptr<scalar_t>();
      v.g_score = g_score.data_ptr<scalar_t>();
      v.g_query = g_query.data_ptr<scalar_t>();
      v.g_query_on_edges = g_query_on_edges.data_ptr<scalar_t>();
      v.g_key = g_key.data_ptr<scalar_t>();
      v.g_value = g_value.data_ptr<scalar_t>();
      v.g_features = g_features.data_ptr<scalar_t>();
      at::parallel_for(0, edges->num_targets, kGrain,
                       [&](int64_t first, int64_t last) { target_gradients(v, first, last); });
      at::parallel_for(0, edges->num_sources, kGrain,
                       [&](int64_t first, int64_t last) { source_gradients(v, first, last); });
    });
    variable_list all{g_query, g_query_on_edges, g_key, g_value, g_features};
    all.resize(8);  // of scale, heads and edges
    return all;
  }
};

void check_shapes(const AttentionInputs& in, int64_t heads, const EdgeIndex& edges) {
  const int64_t width = in.query.size(1), edge_width = in.edge_features.size(1);
  const auto has_shape = [](const at::Tensor& t, int64_t rows, int64_t columns) {
    return t.dim() == 2 && t.size(0) == rows && t.size(1) == columns;
  };
  AIFS_CHECK(width % heads == 0 && has_shape(in.query, edges.num_targets, width) &&
                 has_shape(in.query_on_edges, edges.num_targets, heads * edge_width) &&
                 has_shape(in.key, edges.num_sources, width) &&
                 has_shape(in.value, edges.num_sources, width) &&
                 has_shape(in.edge_features, edges.num_edges, edge_width),
             "attention of ", heads, " heads over ", edges.num_edges, " edges: queries ",
             in.query.sizes(), " and ", in.query_on_edges.sizes(), ", keys ", in.key.sizes(),
             ", values ", in.value.sizes(), ", edge features ", in.edge_features.sizes());
}

}  // namespace

AttentionSums graph_attention(const AttentionInputs& in, int64_t num_heads,
                              const EdgeIndexPtr& edges) {
  check_shapes(in, num_heads, *edges);
  if (cuda_attention::supports(in, num_heads))
    return cuda_attention::graph_attention(in, num_heads, edges);
  const at::ScalarType type = in.query.scalar_type();
  if (compute_type(OpKind::kSoftmax, type) != type) {
    const auto wide = [](const at::Tensor& x) { return for_op(OpKind::kSoftmax, x); };
    const AttentionSums sums =
        graph_attention({wide(in.query), wide(in.query_on_edges), wide(in.key), wide(in.value),
                         wide(in.edge_features), in.scale},
                        num_heads, edges);
    return {sums.nodes.to(type), sums.edges.to(type)};
  }
  if (!in.query.is_cpu()) return graph_attention_plain(in, num_heads, edges);
  const variable_list sums = GraphAttention::apply(in.query, in.query_on_edges, in.key, in.value,
                                                   in.edge_features, in.scale, num_heads, edges);
  return {sums[0], sums[1]};
}

AttentionSums graph_attention_plain(const AttentionInputs& in, int64_t num_heads,
                                    const EdgeIndexPtr& edges) {
  check_shapes(in, num_heads, *edges);
  const int64_t m = edges->num_edges, n = edges->num_targets;
  const at::Tensor &source = edges->source, &target = edges->target;
  const auto per_head = [&](const at::Tensor& rows) { return rows.view({m, num_heads, -1}); };
  const at::Tensor key = per_head(in.key.index_select(0, source));
  const at::Tensor value = per_head(in.value.index_select(0, source));
  const at::Tensor features = in.edge_features.unsqueeze(1);
  const at::Tensor score =
      in.scale * ((per_head(in.query.index_select(0, target)) * key).sum(-1) +
                  (per_head(in.query_on_edges.index_select(0, target)) * features).sum(-1));
  const at::Tensor index = target.to(at::kLong).unsqueeze(1).expand({m, num_heads});
  const at::Tensor largest =
      at::zeros({n, num_heads}, score.options())
          .scatter_reduce(0, index, score.detach(), "amax", /*include_self=*/false);
  const at::Tensor weight = at::exp(score - largest.index_select(0, target));
  const auto sum_at_target = [&](const at::Tensor& rows) {
    return at::zeros({n, rows.size(1)}, rows.options()).index_add(0, target, rows);
  };
  const at::Tensor alpha = weight / sum_at_target(weight).index_select(0, target);
  return {sum_at_target((alpha.unsqueeze(-1) * value).reshape({m, -1})),
          sum_at_target((alpha.unsqueeze(-1) * features).reshape({m, -1}))};
}

}  // namespace aifs::model
