// SPDX-License-Identifier: Apache-2.0
#include "train/loss/member_pairs.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

TEST_CASE("the coefficient is fair at 1, plain at 0", "[member_pairs]") {
  REQUIRE(pair_coefficient(4, 1.0) == 1.0 / 12.0);
  REQUIRE(pair_coefficient(4, 0.0) == 1.0 / 16.0);
}

TEST_CASE("a kernel score is the sum over all pairs", "[member_pairs]") {
  const at::Tensor x = random_tensor({2, 1, 4, 3, 2}, 1), y = random_tensor({2, 1, 1, 3, 2}, 2);
  at::Tensor expected = (x - y).abs().mean(2, true);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < i; ++j)
      expected = expected - 0.1 * (x.narrow(2, i, 1) - x.narrow(2, j, 1)).abs();
  }
  REQUIRE(max_difference(kernel_score(x, y, 0.1, absolute), expected) <= 1e-15);
}

TEST_CASE("gradients flow through any distance, to members and truth", "[member_pairs]") {
  const at::Tensor x = random_tensor({1, 1, 3, 4, 2}, 3), y = random_tensor({1, 1, 1, 4, 2}, 4);
  const Distance norm = [](const at::Tensor& q) { return safe_sqrt(q.square().sum(3, true)); };
  REQUIRE(test::gradient_error(
              [&](const auto& in) { return kernel_score(in[0], in[1], 0.2, norm); }, {x, y}) <=
          test::gradient_tolerance());
}

TEST_CASE("complex differences count by their modulus", "[member_pairs]") {
  const at::Tensor x = random_tensor({1, 1, 2, 3, 2, 2}, 5),
                   y = random_tensor({1, 1, 1, 3, 2, 2}, 6);
  const auto score = [](const auto& in) {
    return kernel_score(at::view_as_complex(in[0]), at::view_as_complex(in[1]), 0.25, absolute);
  };
  REQUIRE(test::gradient_error(score, {x, y}) <= test::gradient_tolerance());
}

TEST_CASE("sums of squares of pairs come with the truth first", "[member_pairs]") {
  const at::Tensor x = random_tensor({1, 2, 3, 4, 2}, 7), y = random_tensor({1, 2, 1, 4, 2}, 8);
  const at::Tensor w = random_tensor({1, 1, 1, 4, 1}, 9).abs();
  const at::Tensor sums = pair_square_sums(x, y, w, {3});
  REQUIRE(sums.sizes().vec() == std::vector<int64_t>{1, 2, 6, 1, 2});
  const auto sum = [&](const at::Tensor& q) { return (q.square() * w).sum(3, true); };
  REQUIRE(max_difference(sums.narrow(2, 1, 1), sum(x.narrow(2, 1, 1) - y)) <= 1e-14);
  REQUIRE(max_difference(sums.narrow(2, 5, 1), sum(x.narrow(2, 1, 1) - x.narrow(2, 2, 1))) <=
          1e-14);
  REQUIRE(test::gradient_error(
              [&](const auto& in) { return pair_square_sums(in[0], in[1], w, {3}); }, {x, y}) <=
          test::gradient_tolerance());
}

TEST_CASE("a root has no slope at 0", "[member_pairs]") {
  const at::Tensor x = at::tensor({0.0, 4.0}, at::kDouble).set_requires_grad(true);
  safe_sqrt(x).sum().backward();
  REQUIRE(max_difference(x.grad(), at::tensor({0.0, 0.25}, at::kDouble)) == 0.0);
}
