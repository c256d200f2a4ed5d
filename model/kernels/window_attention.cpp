// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/window_attention.h"

#include <ATen/ATen.h>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "model/kernels/count_work.h"
#include "model/kernels/cuda/window_attention.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::model {

#ifdef AIFS_HAVE_CUDA
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Heads next to each other, rows and their ends at multiples of 16 bytes.
bool lies_well(const at::Tensor& x) {
  return x.stride(3) == 1 && (x.size(2) == 1 || x.stride(2) == x.size(3)) && x.stride(1) % 8 == 0 &&
         x.stride(1) >= x.size(2) * x.size(3) && (x.size(0) == 1 || x.stride(0) % 8 == 0) &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}
at::Tensor laid_well(const at::Tensor& x) {
  return lies_well(x) ? x : x.contiguous();
}

cuda::HeadRows head_rows_of(const at::Tensor& x) {
  return {const_cast<void*>(x.const_data_ptr()), x.stride(1), x.stride(0)};
}

struct AttentionInWindow {
  at::Tensor query, key, value, out, log_sums;
  int64_t window;

  cuda::WindowAttention call() const {
    return {.batches = query.size(0),
            .rows = query.size(1),
            .heads = query.size(2),
            .window = window,
            .query = head_rows_of(query),
            .key = head_rows_of(key),
            .value = head_rows_of(value),
            .out = head_rows_of(out),
            .log_sums = log_sums.data_ptr<float>()};
  }
  // The operations of a product of scores.
  double operations() const {
    const auto n = static_cast<double>(query.size(1));
    const auto w = static_cast<double>(std::min(window, query.size(1) - 1));
    return 2.0 * (n * (2.0 * w + 1.0) - w * (w + 1.0)) *
           static_cast<double>(query.size(0) * query.size(2) * query.size(3));
  }
};

struct WindowAttentionFunction : torch::autograd::Function<WindowAttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, int64_t window) {
    const at::Tensor out = at::empty(query.sizes(), query.options());
    const at::Tensor log_sums =
        at::empty({query.size(0), query.size(2), cuda::padded_rows(query.size(1))},
                  query.options().dtype(at::kFloat));
    const AttentionInWindow a{laid_well(query), laid_well(key), laid_well(value), out,
                              log_sums,         window};
    cuda::window_attention(a.call(), stream_of(query));
    count_work("attention in a window", {a.query, a.key, a.value, out}, 2 * a.operations());
    ctx->save_for_backward({a.query, a.key, a.value, out, log_sums});
    ctx->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list s = ctx->get_saved_variables();
    const AttentionInWindow a{s[0], s[1], s[2], s[3], s[4], ctx->saved_data["window"].toInt()};
    const at::Tensor d_out = laid_well(gradients[0]);
    const auto like = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
    const at::Tensor d_query = like(a.query), d_key = like(a.key), d_value = like(a.value);
    const at::Tensor deltas = like(a.log_sums);
    cuda::window_attention_backward(a.call(),
                                    {.d_out = head_rows_of(d_out),
                                     .d_query = head_rows_of(d_query),
                                     .d_key = head_rows_of(d_key),
                                     .d_value = head_rows_of(d_value),
                                     .deltas = deltas.data_ptr<float>()},
                                    stream_of(d_out));
    count_work("attention in a window backward",
               {a.query, a.key, a.value, a.out, d_out, d_query, d_key, d_value},
               5 * a.operations());
    return {d_query, d_key, d_value, at::Tensor()};
  }
};

}  // namespace
#endif

bool window_attention_fits([[maybe_unused]] const at::Tensor& query,
                           [[maybe_unused]] const at::Tensor& key,
                           [[maybe_unused]] const at::Tensor& value) {
#ifdef AIFS_HAVE_CUDA
  return query.is_cuda() && query.scalar_type() == at::kBFloat16 && query.numel() > 0 &&
         query.sizes() == key.sizes() && query.sizes() == value.sizes() &&
         query.size(1) < int64_t{1} << 30 && cuda::window_attention_supported(query.size(3));
#else
  return false;
#endif
}

at::Tensor window_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            [[maybe_unused]] int64_t window) {
  AIFS_CHECK(window_attention_fits(query, key, value), "no kernel for attention of queries ",
             query.sizes(), ", keys ", key.sizes(), ", values ", value.sizes(), " of ",
             query.scalar_type());
#ifdef AIFS_HAVE_CUDA
  return WindowAttentionFunction::apply(query, key, value, window);
#else
  return query;
#endif
}

}  // namespace aifs::model
