// SPDX-License-Identifier: Apache-2.0
// Built twice, the second time with AIFS_GPU_TEST for a GPU.
#include "model/network/prediction.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "model/base/filling.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;
using test::random_tensor;

namespace {

const OutputVariables kOutputs{.names = {"a", "b", "c", "d", "e"}, .mean = {}, .stdev = {}};

// Columns 4 and 1 of a guess are added to variables 0 and 3; 1 and 2 are limited.
struct Setup {
  ParameterSet set{at::kDouble, 1};
  GuessColumns columns{set, {0, 3}, {4, 1}, 5};
  std::vector<Bounding> boundings;

  explicit Setup(bool dependent = false) {
    const ParameterScope scope(set);
    boundings.emplace_back(
        scope / 0, BoundingOptions{.kind = BoundingKind::kLeakyRelu, .variables = {"c", "d"}},
        kOutputs, "b");
    boundings.emplace_back(
        scope / 1, BoundingOptions{.kind = BoundingKind::kRelu, .variables = {"b"}}, kOutputs, "b");
    if (dependent) {
      boundings.emplace_back(
          scope / 2,
          BoundingOptions{.kind = BoundingKind::kFraction, .variables = {"a"}, .total_var = "c"},
          kOutputs, "b");
    }
    set.flatten(kDevice);
  }
  // By LibTorch's operators, one after another.
  at::Tensor expected(const at::Tensor& rows, at::IntArrayRef sizes,
                      const at::Tensor& guess) const {
    at::Tensor y = rows.narrow(1, 0, sizes[1] * sizes[4])
                       .reshape({sizes[0], sizes[2], sizes[3], sizes[1], sizes[4]})
                       .permute({0, 3, 1, 2, 4});
    if (guess.defined()) {
      y = y.index_add(-1, columns.outputs(),
                      guess.index_select(-1, columns.columns()).expand({-1, sizes[1], -1, -1, -1}));
    }
    for (const Bounding& bounding : boundings)
      y = bounding.forward(y);
    return y;
  }
};

}  // namespace

#ifndef AIFS_GPU_TEST
TEST_CASE("gradients of a prediction are central differences", "[prediction]") {
  for (const int64_t times : {1, 2}) {
    for (const bool dependent : {false, true}) {
      const Setup s(dependent);
      const std::vector<int64_t> sizes{2, times, 2, 3, 5};
      const auto function = [&](const std::vector<at::Tensor>& in) {
        return predict(in[0], sizes, at::kDouble, in[1], s.columns, s.boundings).tanh();
      };
      REQUIRE(test::gradient_error(function, {random_tensor({12, 5 * times}, 1),
                                              random_tensor({2, 1, 2, 3, 6}, 2)}) <=
              test::gradient_tolerance());
    }
  }
}

TEST_CASE("rows must fit the fields", "[prediction]") {
  const Setup s;
  REQUIRE_THROWS_AS(
      predict(random_tensor({3, 4}, 1), {1, 1, 1, 3, 5}, at::kDouble, {}, s.columns, {}), Error);
}
#endif

TEST_CASE("a prediction is rows as fields, a guess added, then limited", "[prediction]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const auto& sizes :
         std::vector<std::vector<int64_t>>{{1, 1, 1, 3000, 5}, {2, 1, 3, 7, 5}, {2, 3, 2, 4, 5}}) {
      for (const bool with_guess : {false, true}) {
        for (const bool dependent : {false, true}) {
          INFO(at::toString(type) << ", " << sizes[3] << " nodes");
          const Setup s(dependent);
          const at::ScalarType out = type == at::kDouble ? at::kDouble : at::kFloat;
          const int64_t count = sizes[0] * sizes[2] * sizes[3], width = sizes[1] * sizes[4];
          const at::Tensor some = random_tensor({count, width}, 1).to(kDevice, type);
          const at::Tensor room = pad_columns(some, padding(some, width));
          const at::Tensor rows = room.clone().set_requires_grad(true);
          // One of several times, as a residual takes it.
          const at::Tensor times =
              random_tensor({sizes[0], 2, sizes[2], sizes[3], 6}, 2).to(kDevice, out);
          const at::Tensor guess = with_guess ? times.narrow(1, 1, 1) : at::Tensor();
          const at::Tensor got = predict(rows, sizes, out, guess, s.columns, s.boundings);
          REQUIRE(got.is_contiguous());
          REQUIRE(got.scalar_type() == out);
          const at::Tensor exact = room.detach().to(out).set_requires_grad(true);
          const at::Tensor expected = s.expected(exact, sizes, guess);
          REQUIRE(test::max_difference(got, expected) <= 1e-6);
          const at::Tensor d = random_tensor(sizes, 3).to(kDevice, out);
          got.backward(d);
          expected.backward(d);
          REQUIRE(at::equal(rows.grad(), exact.grad().to(type)));
          const at::NoGradGuard no_grad;
          REQUIRE(at::equal(predict(room, sizes, out, guess, s.columns, s.boundings), got));
        }
      }
    }
  }
}

TEST_CASE("the guess of a prediction gets its gradient", "[prediction]") {
  const Setup s;
  const std::vector<int64_t> sizes{2, 1, 3, 7, 5};
  const auto gradient = [&](bool one_by_one) {
    const at::Tensor rows = random_tensor({42, 5}, 1).to(kDevice, at::kFloat);
    const at::Tensor guess =
        random_tensor({2, 1, 3, 7, 6}, 2).to(kDevice, at::kFloat).set_requires_grad(true);
    const at::Tensor y = one_by_one
                             ? s.expected(rows, sizes, guess)
                             : predict(rows, sizes, at::kFloat, guess, s.columns, s.boundings);
    y.backward(random_tensor(sizes, 3).to(kDevice, at::kFloat));
    return guess.grad();
  };
  REQUIRE(at::equal(gradient(false), gradient(true)));
}
