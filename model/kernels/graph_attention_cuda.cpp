// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/graph_attention_cuda.h"

#include <ATen/ATen.h>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/kernels/count_work.h"
#include "model/kernels/cuda/graph_attention.h"
#include "model/kernels/cuda_call.h"
#include "model/kernels/edge_index_holder.h"

namespace aifs::model::cuda_attention {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cuda::AttentionShape shape_of(const AttentionInputs& in, int64_t heads) {
  return {.targets = in.query.size(0),
          .sources = in.key.size(0),
          .edges = in.edge_features.size(0),
          .heads = static_cast<int>(heads),
          .width = static_cast<int>(in.query.size(1) / heads),
          .edge_width = static_cast<int>(in.edge_features.size(1)),
          .type = *element_type(in.query.scalar_type()),
          .scale = static_cast<float>(in.scale)};
}

cuda::AttentionForward pointers_of(const AttentionInputs& in, const EdgeIndex& edges,
                                   const at::Tensor& nodes, const at::Tensor& sums_of_edges,
                                   const at::Tensor& log_sum) {
  return {.query = in.query.const_data_ptr(),
          .query_on_edges = in.query_on_edges.const_data_ptr(),
          .key = in.key.const_data_ptr(),
          .value = in.value.const_data_ptr(),
          .features = in.edge_features.const_data_ptr(),
          .target_begin = edges.target_begin.const_data_ptr<int32_t>(),
          .source = edges.source.const_data_ptr<int32_t>(),
          .nodes = nodes.data_ptr(),
          .edges = sums_of_edges.data_ptr(),
          .log_sum = log_sum.data_ptr<float>()};
}

struct GraphAttention : torch::autograd::Function<GraphAttention> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& query,
                               const at::Tensor& query_on_edges, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& edge_features,
                               double scale, int64_t heads, const EdgeIndexPtr& edges) {
    const AttentionInputs in{query.contiguous(), query_on_edges.contiguous(), key.contiguous(),
                             value.contiguous(), edge_features.contiguous(),  scale};
    const at::Tensor nodes = at::empty_like(in.query), on_edges = at::empty_like(in.query_on_edges);
    const at::Tensor log_sum = at::empty({query.size(0), heads}, query.options().dtype(at::kFloat));
    cuda::attention_forward(shape_of(in, heads), pointers_of(in, *edges, nodes, on_edges, log_sum),
                            stream_of(query));
    count_work("graph attention", {in.query, in.query_on_edges, in.key, in.value, in.edge_features,
                                   edges->source, nodes, on_edges, log_sum});
    ctx->save_for_backward({in.query, in.query_on_edges, in.key, in.value, in.edge_features, nodes,
                            on_edges, log_sum});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["edges"] = hold(edges);
    return {nodes, on_edges};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const AttentionInputs in{saved[0], saved[1], saved[2],
                             saved[3], saved[4], ctx->saved_data["scale"].toDouble()};
    const int64_t heads = ctx->saved_data["heads"].toInt();
    const EdgeIndexPtr edges = held_edges(ctx->saved_data["edges"]);
    const at::Tensor d_nodes = gradient_or_zeros(gradients[0], in.query);
    const at::Tensor d_edges = gradient_or_zeros(gradients[1], in.query_on_edges);
    variable_list d;
    for (size_t i = 0; i < 5; ++i)
      d.push_back(at::empty_like(saved[i]));
    const at::Tensor weights =
        at::empty({edges->num_edges, heads, 2}, in.query.options().dtype(at::kFloat));
    const cuda::AttentionBackward b{
        .forward = pointers_of(in, *edges, saved[5], saved[6], saved[7]),
        .target = edges->target.const_data_ptr<int32_t>(),
        .source_begin = edges->source_begin.const_data_ptr<int32_t>(),
        .source_edges = edges->source_edges.const_data_ptr<int32_t>(),
        .d_nodes = d_nodes.const_data_ptr(),
        .d_edges = d_edges.const_data_ptr(),
        .d_query = d[0].data_ptr(),
        .d_query_on_edges = d[1].data_ptr(),
        .d_key = d[2].data_ptr(),
        .d_value = d[3].data_ptr(),
        .d_features = d[4].data_ptr(),
        .weights = weights.data_ptr<float>()};
    cuda::attention_backward(shape_of(in, heads), b, stream_of(in.query));
    count_work("graph attention backward",
               {in.query, in.query_on_edges, in.key, in.value, in.edge_features, edges->source,
                saved[5], saved[6], saved[7], d_nodes, d_edges, d[0], d[1], d[2], d[3], d[4]});
    d.resize(8);  // of scale, heads and edges
    return d;
  }
};

}  // namespace

bool supports(const AttentionInputs& in, int64_t num_heads) {
  const at::ScalarType type = in.query.scalar_type();
  for (const at::Tensor& rows : {in.query_on_edges, in.key, in.value, in.edge_features}) {
    if (rows.scalar_type() != type) return false;
  }
  return in.query.is_cuda() && element_type(type) &&
         cuda::attention_supported(shape_of(in, num_heads));
}

AttentionSums graph_attention(const AttentionInputs& in, int64_t num_heads,
                              const EdgeIndexPtr& edges) {
  const variable_list sums = GraphAttention::apply(in.query, in.query_on_edges, in.key, in.value,
                                                   in.edge_features, in.scale, num_heads, edges);
  return {sums[0], sums[1]};
}

}  // namespace aifs::model::cuda_attention

#else

namespace aifs::model::cuda_attention {

bool supports(const AttentionInputs&, int64_t) {
  return false;
}
AttentionSums graph_attention(const AttentionInputs&, int64_t, const EdgeIndexPtr&) {
  throw Error("this program was built without CUDA");
}

}  // namespace aifs::model::cuda_attention

#endif
