// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/flash_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <tuple>
#include <vector>

#include "model/kernels/overlap_sum.h"
#include "model/kernels/window_attention.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The library adds up gradients of queries in a fixed order only if it is told so for all it does.
// Ranks may be threads of a process (parallel.reproducible): one backward pass at a time asks.
class FixedOrder {
 public:
  FixedOrder() {
    context_.setDeterministicFillUninitializedMemory(false);
    context_.setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~FixedOrder() {
    context_.setDeterministicAlgorithms(on_, warn_only_);
    context_.setDeterministicFillUninitializedMemory(fills_);
  }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  inline static std::mutex mutex_;
  std::lock_guard<std::mutex> lock_{mutex_};
  at::Context& context_ = at::globalContext();
  bool on_ = context_.deterministicAlgorithms();
  bool warn_only_ = context_.deterministicAlgorithmsWarnOnly();
  bool fills_ = context_.deterministicFillUninitializedMemory();
};

// In a fixed order the kernel gives a head of a sequence to one block, or to several with sums of
// their own. So the sequence is cut into parts, sequences to the kernel, each with the keys around
// it: four for every multiprocessor, all heads counted.
constexpr int64_t kHeadsOfParts = 4 * 132, kShortestPart = 128;

struct Parts {
  int64_t first, length, count;
};

// First, last and those between, which look alike; or all as one.
std::vector<Parts> parts_of(int64_t rows, int64_t heads, int64_t window) {
  const int64_t length = std::max({rows / (kHeadsOfParts / heads + 2), window, kShortestPart});
  const int64_t between = rows / length - 2;
  if (between < 1) return {{0, rows, 1}};
  const int64_t last = (1 + between) * length;
  return {{0, length, 1}, {length, length, between}, {last, rows - last, 1}};
}

// Rows [start, start + length) of the first part, and those of the others like it, in a view
// (B, parts, length, H, d) of x (B, N, H, d).
at::Tensor rows_of(const at::Tensor& x, const Parts& parts, int64_t start, int64_t length) {
  return x.narrow(1, start, (parts.count - 1) * parts.length + length)
      .unfold(1, length, parts.length)
      .permute({0, 1, 4, 2, 3});
}

// Describes what the library's backward pass takes, with a window that reaches so far to either
// side.
struct BackwardInput {
  at::Tensor d_out, query, key, value, out, log_sum, seed, offset;
  int64_t left, right;
};

// Gradients of query, key and value.
std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_in_order(const BackwardInput& b) {
  const FixedOrder fixed;
  return at::_flash_attention_backward(b.d_out, b.query, b.key, b.value, b.out, b.log_sum, {}, {},
                                       b.query.size(1), b.key.size(1), /*dropout_p=*/0.0,
                                       /*is_causal=*/false, b.seed, b.offset,
                                       /*scale=*/std::nullopt, b.left, b.right);
}

// The backward pass of as many queries as keys.
struct Backward {
  at::Tensor d_out, query, key, value, out, log_sum, seed, offset;
  int64_t window;

  // Writes the gradients of the queries of `parts` to `all_d_query`, and returns those of the keys
  // and values that they see.
  std::array<OverlappingPieces, 2> of(const Parts& parts, const at::Tensor& all_d_query) const {
    const int64_t begin = std::max<int64_t>(0, parts.first - window), before = parts.first - begin;
    const int64_t num_keys = std::min(key.size(1), parts.first + parts.length + window) - begin;
    const auto queries = [&](const at::Tensor& x) {
      return rows_of(x, parts, parts.first, parts.length);
    };
    const auto keys = [&](const at::Tensor& x) {
      return rows_of(x, parts, begin, num_keys).flatten(0, 1);
    };
    const at::Tensor log_sums = queries(log_sum.transpose(1, 2).unsqueeze(-1))
                                    .flatten(0, 1)
                                    .squeeze(-1)
                                    .transpose(1, 2)
                                    .contiguous();
    // The window as the library counts it, from where the ends meet.
    const int64_t moved = num_keys - parts.length - before;
    const auto [d_query, d_key, d_value] = gradients_in_order(
        {queries(d_out).flatten(0, 1), queries(query).flatten(0, 1), keys(key), keys(value),
         queries(out).flatten(0, 1), log_sums, seed, offset, window + moved, window - moved});
    const at::Tensor to = queries(all_d_query);
    to.copy_(d_query.view(to.sizes()));
    return {
        {{d_key, begin, parts.length, parts.count}, {d_value, begin, parts.length, parts.count}}};
  }
};

struct FlashAttention : torch::autograd::Function<FlashAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, int64_t window) {
    const auto [out, log_sum, seed, offset, mask] = at::_flash_attention_forward(
        query, key, value, {}, {}, query.size(1), key.size(1), /*dropout_p=*/0.0,
        /*is_causal=*/false, /*return_debug_mask=*/false, /*scale=*/std::nullopt, window, window);
    ctx->save_for_backward({query, key, value, out, log_sum, seed, offset});
    ctx->saved_data["window"] = window;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list s = ctx->get_saved_variables();
    const int64_t window = ctx->saved_data["window"].toInt();
    const Backward b{gradients[0].contiguous(), s[0], s[1], s[2], s[3], s[4], s[5], s[6], window};
    const int64_t rows = b.query.size(1), heads = b.query.size(0) * b.query.size(2);
    const std::vector<Parts> all = parts_of(rows, heads, window);
    if (rows != b.key.size(1) || all.size() == 1) {
      const auto [d_query, d_key, d_value] = gradients_in_order(
          {b.d_out, b.query, b.key, b.value, b.out, b.log_sum, b.seed, b.offset, window, window});
      return {d_query, d_key, d_value, at::Tensor()};
    }
    const at::Tensor d_query = at::empty_like(b.query);
    std::vector<OverlappingPieces> keys, values;
    for (const Parts& parts : all) {
      const auto [of_keys, of_values] = b.of(parts, d_query);
      keys.push_back(of_keys), values.push_back(of_values);
    }
    // Neighbours share the keys between them.
    return {d_query, overlap_sum(keys, rows), overlap_sum(values, rows), at::Tensor()};
  }
};

}  // namespace

at::Tensor flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           int64_t window) {
  if (window_attention_fits(query, key, value)) return window_attention(query, key, value, window);
  return FlashAttention::apply(query, key, value, window);
}

}  // namespace aifs::model
