// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/sequence_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-13;

// Query by query, key by key.
at::Tensor by_hand(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t copies,
                   const SequenceAttentionOptions& o) {
  const int64_t nq = q.size(0) / copies, nk = k.size(0) / copies, d = q.size(1) / o.heads;
  at::Tensor out = at::zeros_like(q);
  for (int64_t row = 0; row < q.size(0); ++row) {
    const int64_t copy = row / nq, i = row % nq + o.shift;
    for (int64_t h = 0; h < o.heads; ++h) {
      at::Tensor sum = at::zeros({d}, at::kDouble);
      double weights = 0.0;
      for (int64_t j = 0; j < nk; ++j) {
        const int64_t distance = std::abs(i - j);
        if (o.window && distance > *o.window) continue;
        const auto head = [&](const at::Tensor& t, int64_t r) { return t[r].narrow(0, h * d, d); };
        double score = at::dot(head(q, row), head(k, copy * nk + j)).item<double>() /
                       std::sqrt(static_cast<double>(d));
        if (o.softcap > 0) score = o.softcap * std::tanh(score / o.softcap);
        if (o.alibi_slopes.defined()) {
          score -= o.alibi_slopes[h].item<double>() * static_cast<double>(distance);
        }
        sum += std::exp(score) * head(v, copy * nk + j);
        weights += std::exp(score);
      }
      if (weights > 0) out[row].narrow(0, h * d, d).copy_(sum / weights);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("attention equals attention by hand, whatever its options", "[sequence_attention]") {
  const std::vector<SequenceAttentionOptions> all{
      {.heads = 2},
      {.heads = 2, .window = 0},
      {.heads = 2, .window = 3},
      {.heads = 2, .window = 100},
      {.heads = 2, .window = 3, .shift = -2},
      {.heads = 3, .softcap = 0.7},
      {.heads = 6, .alibi_slopes = alibi_slopes(6)},
      {.heads = 3, .window = 4, .shift = 5, .softcap = 2.0, .alibi_slopes = alibi_slopes(3)}};
  for (const auto& [nq, nk] : {std::pair<int64_t, int64_t>{7, 7}, {12, 4}, {3, 9}, {1, 1}}) {
    const at::Tensor q = random_tensor({2 * nq, 12}, 1), k = random_tensor({2 * nk, 12}, 2);
    const at::Tensor v = random_tensor({2 * nk, 12}, 3);
    for (size_t i = 0; i < all.size(); ++i) {
      INFO("options " << i << ", " << nq << " queries, " << nk << " keys");
      REQUIRE(max_difference(sequence_attention(q, k, v, 2, all[i]), by_hand(q, k, v, 2, all[i])) <=
              kRounding);
    }
  }
}

TEST_CASE("long sequences are worked on in bands, with the same result", "[sequence_attention]") {
  const int64_t n = 400;  // several blocks of queries
  const at::Tensor q = random_tensor({n, 4}, 1), k = random_tensor({n, 4}, 2);
  const at::Tensor v = random_tensor({n, 4}, 3);
  const at::Tensor seen = (at::arange(n).unsqueeze(1) - at::arange(n).unsqueeze(0)).abs() <= 20;
  const at::Tensor score =
      (at::mm(q, k.t()) / 2.0)
          .masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  REQUIRE(max_difference(sequence_attention(q, k, v, 1, {.heads = 1, .window = 20}),
                         at::mm(at::softmax(score, -1), v)) <= kRounding);
}

TEST_CASE("sequence attention has the gradients of finite differences", "[sequence_attention]") {
  for (const SequenceAttentionOptions& options :
       {SequenceAttentionOptions{.heads = 2}, SequenceAttentionOptions{.heads = 2, .window = 1},
        SequenceAttentionOptions{.heads = 2, .softcap = 1.0, .alibi_slopes = alibi_slopes(2)}}) {
    const auto function = [&](const std::vector<at::Tensor>& in) {
      return sequence_attention(in[0], in[1], in[2], 1, options);
    };
    // More queries than keys: with the window, the last ones see nothing.
    REQUIRE(test::gradient_error(function, {random_tensor({6, 4}, 1), random_tensor({3, 4}, 2),
                                            random_tensor({3, 4}, 3)}) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("a query that sees no key gets zero", "[sequence_attention]") {
  const at::Tensor q = random_tensor({10, 4}, 1), k = random_tensor({2, 4}, 2);
  const at::Tensor out = sequence_attention(q, k, k, 1, {.heads = 1, .window = 2});
  REQUIRE(out.narrow(0, 4, 6).abs().max().item<double>() == 0.0);
  REQUIRE(out.narrow(0, 0, 4).abs().amin(1).min().item<double>() > 0.0);
}

TEST_CASE("slopes of six heads are those of the paper", "[sequence_attention]") {
  const at::Tensor expected = at::tensor({.25, .0625, .015625, .00390625, .5, .125}, at::kDouble);
  REQUIRE(max_difference(alibi_slopes(6), expected) == 0.0);
}

TEST_CASE("rotation keeps lengths, and products depend on distance only", "[sequence_attention]") {
  const at::Tensor row = random_tensor({1, 8}, 1), other = random_tensor({1, 8}, 2);
  const at::Tensor a = rotate_by_position(row.repeat({6, 1}), 1, 2);
  const at::Tensor b = rotate_by_position(other.repeat({6, 1}), 1, 2);
  REQUIRE(max_difference(a[0], row[0]) == 0.0);
  REQUIRE(max_difference(a.square().sum(1), row.square().sum().repeat({6})) <= kRounding);
  const at::Tensor products = at::mm(a, b.t());
  for (int64_t i = 0; i + 1 < 6; ++i)
    REQUIRE(max_difference(products[i + 1][i], products[1][0]) <= kRounding);
  // The second half of a head is the imaginary part; the first pair turns by one radian a step.
  const at::Tensor unit =
      rotate_by_position(at::tensor({1., 0., 0., 0.}).to(at::kDouble).repeat({2, 1}), 1, 1);
  REQUIRE(max_difference(unit[1], at::tensor({std::cos(1.), 0., std::sin(1.), 0.}, at::kDouble)) <=
          kRounding);
  REQUIRE_THROWS_AS(rotate_by_position(random_tensor({2, 3}, 1), 1, 1), Error);
}
