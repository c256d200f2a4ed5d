// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/segment.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/check.h"
#include "model/base/precision.h"
#include "model/kernels/edge_index_holder.h"
#include "model/kernels/simd.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of this many nodes or edges are one piece of work for a thread.
constexpr int64_t kRowGrain = 256;

// A list of edges per node: edges list[begin[i]] ... list[begin[i+1] - 1], or those numbers
// themselves where list is null.
struct EdgeLists {
  const int32_t* begin;
  const int32_t* list;
};

#define AIFS_DEFINE_ROW_KERNELS(T)                                                             \
  AIFS_SIMD void sum_rows(T* out, const T* rows, EdgeLists lists, int64_t first, int64_t last, \
                          int64_t width) {                                                     \
    for (int64_t i = first; i < last; ++i) {                                                   \
      T* sum = out + i * width;                                                                \
      for (int64_t c = 0; c < width; ++c)                                                      \
        sum[c] = 0;                                                                            \
      for (int32_t k = lists.begin[i]; k < lists.begin[i + 1]; ++k) {                          \
        const T* row = rows + static_cast<int64_t>(lists.list ? lists.list[k] : k) * width;    \
        for (int64_t c = 0; c < width; ++c)                                                    \
          sum[c] += row[c];                                                                    \
      }                                                                                        \
    }                                                                                          \
  }                                                                                            \
  AIFS_SIMD void add_two_rows(T* rows, const T* a, const int32_t* index_a, const T* b,         \
                              const int32_t* index_b, int64_t first, int64_t last,             \
                              int64_t width) {                                                 \
    for (int64_t e = first; e < last; ++e) {                                                   \
      T* row = rows + e * width;                                                               \
      const T* from_a = a + static_cast<int64_t>(index_a[e]) * width;                          \
      const T* from_b = b + static_cast<int64_t>(index_b[e]) * width;                          \
      for (int64_t c = 0; c < width; ++c)                                                      \
        row[c] += from_a[c] + from_b[c];                                                       \
    }                                                                                          \
  }

AIFS_DEFINE_ROW_KERNELS(float)
AIFS_DEFINE_ROW_KERNELS(double)
#undef AIFS_DEFINE_ROW_KERNELS

void check_rows(const at::Tensor& rows, int64_t expected, const char* what) {
  AIFS_CHECK(rows.dim() == 2 && rows.size(0) == expected, what, " must have ", expected,
             " rows, not ", rows.sizes());
}

// LibTorch's own deterministic sum over runs of rows; rows by source are first brought together.
at::Tensor sum_edges_by_library(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets) {
  const at::Tensor sorted = at_targets ? rows : rows.index_select(0, edges.source_edges);
  const at::Tensor& offsets = at_targets ? edges.target_begin : edges.source_begin;
  return at::segment_reduce(sorted, "sum", /*lengths=*/{}, /*indices=*/{}, offsets, /*axis=*/0,
                            /*unsafe=*/true, /*initial=*/0);
}

}  // namespace

at::Tensor sum_edges(const at::Tensor& edge_rows, const EdgeIndex& edges, bool at_targets) {
  check_rows(edge_rows, edges.num_edges, "edge rows");
  const int64_t nodes = at_targets ? edges.num_targets : edges.num_sources;
  const int64_t width = edge_rows.size(1);
  const at::Tensor rows = for_op(OpKind::kSegmentSum, edge_rows).contiguous();
  if (rows.is_cuda()) return sum_edges_by_library(rows, edges, at_targets).to(edge_rows.dtype());
  at::Tensor out = at::empty({nodes, width}, rows.options());
  const EdgeLists lists{
      (at_targets ? edges.target_begin : edges.source_begin).const_data_ptr<int32_t>(),
      at_targets ? nullptr : edges.source_edges.const_data_ptr<int32_t>()};
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "sum_edges", [&] {
    at::parallel_for(0, nodes, kRowGrain, [&](int64_t first, int64_t last) {
      sum_rows(out.data_ptr<scalar_t>(), rows.const_data_ptr<scalar_t>(), lists, first, last,
               width);
    });
  });
  return out.to(edge_rows.scalar_type());
}

void add_node_rows_(const at::Tensor& rows, const at::Tensor& at_target,
                    const at::Tensor& at_source, const EdgeIndex& edges) {
  check_rows(rows, edges.num_edges, "edge rows");
  check_rows(at_target, edges.num_targets, "target rows");
  check_rows(at_source, edges.num_sources, "source rows");
  if (rows.is_cuda() || rows.scalar_type() == at::kBFloat16 || rows.scalar_type() == at::kHalf) {
    rows.add_(at_target.index_select(0, edges.target));
    rows.add_(at_source.index_select(0, edges.source));
    return;
  }
  AIFS_CHECK(rows.is_contiguous() && at_target.is_contiguous() && at_source.is_contiguous(),
             "rows must be contiguous");
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "add_node_rows", [&] {
    at::parallel_for(0, edges.num_edges, kRowGrain, [&](int64_t first, int64_t last) {
      add_two_rows(rows.data_ptr<scalar_t>(), at_target.const_data_ptr<scalar_t>(),
                   edges.target.const_data_ptr<int32_t>(), at_source.const_data_ptr<scalar_t>(),
                   edges.source.const_data_ptr<int32_t>(), first, last, rows.size(1));
    });
  });
}

namespace {

struct SumAtTargets : torch::autograd::Function<SumAtTargets> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& edge_rows,
                            const EdgeIndexPtr& edges) {
    ctx->saved_data["target"] = edges->target;
    return sum_edges(edge_rows, *edges, /*at_targets=*/true);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    return {gradients[0].index_select(0, ctx->saved_data["target"].toTensor()), at::Tensor()};
  }
};

struct EdgeLinear : torch::autograd::Function<EdgeLinear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_target,
                            const at::Tensor& x_source, const at::Tensor& e,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const EdgeIndexPtr& edges) {
    ctx->save_for_backward({x_target, x_source, e, weight});
    ctx->saved_data["edges"] = hold(edges);
    const std::vector<at::Tensor> w = weight.to(e.scalar_type()).chunk(3, 1);
    at::Tensor out = at::addmm(bias.to(e.scalar_type()), e, w[2].t());
    add_node_rows_(out, at::mm(x_target, w[0].t()), at::mm(x_source, w[1].t()), *edges);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x_target = saved[0], &x_source = saved[1], &e = saved[2], &weight = saved[3];
    const EdgeIndexPtr held = held_edges(ctx->saved_data["edges"]);
    const EdgeIndex& edges = *held;
    const at::Tensor g = gradients[0].contiguous();
    const at::Tensor g_target = sum_edges(g, edges, /*at_targets=*/true);
    const at::Tensor g_source = sum_edges(g, edges, /*at_targets=*/false);
    const std::vector<at::Tensor> w = weight.to(e.scalar_type()).chunk(3, 1);
    at::Tensor g_weight = at::empty_like(weight);
    const std::vector<at::Tensor> gw = g_weight.chunk(3, 1);
    gw[0].copy_(at::mm(g_target.t(), x_target));
    gw[1].copy_(at::mm(g_source.t(), x_source));
    gw[2].copy_(at::mm(g.t(), e));
    // Every edge ends somewhere: the sum over edges is the sum over targets, of fewer rows.
    return {at::mm(g_target, w[0]),
            at::mm(g_source, w[1]),
            at::mm(g, w[2]),
            g_weight,
            g_target.sum(0).to(weight.scalar_type()),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor sum_at_targets(const at::Tensor& edge_rows, const EdgeIndexPtr& edges) {
  return SumAtTargets::apply(edge_rows, edges);
}

at::Tensor edge_linear(const at::Tensor& x_target, const at::Tensor& x_source, const at::Tensor& e,
                       const at::Tensor& weight, const at::Tensor& bias,
                       const EdgeIndexPtr& edges) {
  return EdgeLinear::apply(x_target, x_source, e, weight, bias, edges);
}

}  // namespace aifs::model
