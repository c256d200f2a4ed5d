// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/sequence_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/kernels/flash_attention.h"

namespace aifs::model {

namespace {

// Scores, softmax and sum for queries [q0, q0 + n_q) and keys [k0, k0 + n_k), all (B, H, n, d).
struct Block {
  at::Tensor query, key, value;
  int64_t first_query = 0, first_key = 0;
};

at::Tensor attend(const Block& b, const SequenceAttentionOptions& options) {
  const auto integers = b.query.options().dtype(at::kLong);
  const int64_t first = b.first_query + options.shift;
  const at::Tensor distance =
      (at::arange(first, first + b.query.size(2), integers).unsqueeze(1) -
       at::arange(b.first_key, b.first_key + b.key.size(2), integers).unsqueeze(0))
          .abs();  // (n_q, n_k)
  const double scale = 1.0 / std::sqrt(static_cast<double>(b.query.size(3)));
  at::Tensor score = at::matmul(b.query, b.key.transpose(2, 3)) * scale;
  if (options.softcap > 0.0) score = at::tanh(score / options.softcap) * options.softcap;
  if (options.alibi_slopes.defined()) {
    const at::Tensor slopes = options.alibi_slopes.to(score.options());
    score = score - slopes.view({-1, 1, 1}) * distance.to(score.scalar_type());
  }
  if (!options.window) return at::matmul(at::softmax(score, -1), b.value);
  const at::Tensor seen = distance <= *options.window;
  const at::Tensor any = seen.any(-1, /*keepdim=*/true);  // (n_q, 1)
  // A row without keys keeps finite scores, and its result is cleared.
  score = score.masked_fill(seen.logical_not().logical_and(any),
                            -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(score, -1), b.value) * any.to(score.scalar_type());
}

}  // namespace

at::Tensor alibi_slopes(int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads)
    power *= 2;
  at::Tensor slopes = at::empty({heads}, at::kDouble);
  auto values = slopes.accessor<double, 1>();
  const auto n = static_cast<double>(power);
  for (int64_t k = 1; k <= power; ++k)
    values[k - 1] = std::exp2(-8.0 * static_cast<double>(k) / n);
  for (int64_t j = 1; j <= heads - power; ++j)
    values[power + j - 1] = std::exp2(-4.0 * static_cast<double>(2 * j - 1) / n);
  return slopes;
}

at::Tensor rotate_by_position(const at::Tensor& x, int64_t copies, int64_t heads,
                              const at::Tensor& positions) {
  const int64_t rows = x.size(0) / copies, width = x.size(1) / heads, half = width / 2;
  AIFS_CHECK(width % 2 == 0, "heads of odd width ", width, " cannot be rotated");
  const auto real = x.options().dtype(at::kDouble);
  const at::Tensor rate =
      at::pow(10000.0, at::arange(half, real) * (-2.0 / static_cast<double>(width)));
  const at::Tensor at = positions.defined() ? positions.to(real) : at::arange(rows, real);
  const at::Tensor angle = at.unsqueeze(1) * rate.unsqueeze(0);
  const at::Tensor cos = at::cos(angle).view({1, rows, 1, half}).to(x.scalar_type());
  const at::Tensor sin = at::sin(angle).view({1, rows, 1, half}).to(x.scalar_type());
  const at::Tensor by_head = x.view({copies, rows, heads, width});
  const at::Tensor a = by_head.narrow(-1, 0, half), b = by_head.narrow(-1, half, half);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, -1).reshape(x.sizes());
}

KeyRange visible_keys(int64_t first, int64_t count, int64_t num_keys,
                      const SequenceAttentionOptions& options) {
  if (!options.window) return {0, num_keys};
  const int64_t nearest = first + options.shift - *options.window;
  const int64_t begin = std::clamp<int64_t>(nearest, 0, num_keys - 1);
  return {begin, std::clamp<int64_t>(nearest + count + 2 * *options.window, begin + 1, num_keys)};
}

at::Tensor sequence_attention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, int64_t copies,
                              const SequenceAttentionOptions& options) {
  if (query.numel() == 0) return query + (key.sum() + value.sum());
  AIFS_CHECK(query.size(1) % options.heads == 0 && key.size(1) == query.size(1) &&
                 value.sizes() == key.sizes(),
             "attention of ", options.heads, " heads: queries ", query.sizes(), ", keys ",
             key.sizes(), ", values ", value.sizes());
  const int64_t width = query.size(1) / options.heads;
  if (query.is_cuda() && query.element_size() == 2 &&
      flash_does(options, width, query.size(0) / copies, key.size(0) / copies)) {
    const auto rows = [&](const at::Tensor& x) {  // (B, N, H, d)
      return x.view({copies, -1, options.heads, width});
    };
    return flash_attention(rows(query), rows(key), rows(value), *options.window)
        .reshape(query.sizes());
  }
  const auto by_head = [&](const at::Tensor& rows) {  // (B, H, N, d)
    return rows.view({copies, -1, options.heads, width}).transpose(1, 2);
  };
  const at::Tensor q = by_head(query), k = by_head(key), v = by_head(value);
  const int64_t num_queries = q.size(2), num_keys = k.size(2);
  at::Tensor out;
  const bool plain = !options.window && options.softcap <= 0.0 && !options.alibi_slopes.defined();
  if (plain) {
    out = at::scaled_dot_product_attention(q, k, v);
  } else {
    // A block of queries sees a band of keys at most.
    const int64_t size = block_of_queries(options);
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < num_queries; first += size) {
      const int64_t count = std::min(size, num_queries - first);
      const auto [begin, end] = visible_keys(first, count, num_keys, options);
      parts.push_back(attend({q.narrow(2, first, count), k.narrow(2, begin, end - begin),
                              v.narrow(2, begin, end - begin), first, begin},
                             options));
    }
    out = parts.size() == 1 ? parts[0] : at::cat(parts, 2);
  }
  return out.transpose(1, 2).reshape(query.sizes());
}

}  // namespace aifs::model
