// SPDX-License-Identifier: Apache-2.0
#include "model/layers/activation.h"

#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs::model;
using aifs::test::random_tensor;

TEST_CASE("activations are their formulas", "[activation]") {
  using A = Activation;
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  const double alpha = 1.6732632423543772, scale = 1.0507009873554805;
  const std::vector<std::pair<A, std::function<double(double)>>> formulas{
      {A::kGelu, [](double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }},
      {A::kSilu, [&](double x) { return x * sigmoid(x); }},
      {A::kRelu, [](double x) { return x > 0 ? x : 0.0; }},
      {A::kLeakyRelu, [](double x) { return x > 0 ? x : 0.01 * x; }},
      {A::kElu, [](double x) { return x > 0 ? x : std::expm1(x); }},
      {A::kSelu, [&](double x) { return scale * (x > 0 ? x : alpha * std::expm1(x)); }},
      {A::kSoftplus, softplus},
      {A::kTanh, [](double x) { return std::tanh(x); }},
      {A::kSigmoid, sigmoid},
      {A::kMish, [&](double x) { return x * std::tanh(softplus(x)); }},
      {A::kHardswish, [](double x) { return x * std::min(6.0, std::max(0.0, x + 3.0)) / 6.0; }},
      {A::kIdentity, [](double x) { return x; }}};
  REQUIRE(formulas.size() == aifs::EnumNames<A>::table.size());
  const at::Tensor x = 3.0 * random_tensor({50}, 1);
  for (const auto& [activation, formula] : formulas) {
    INFO(aifs::enum_name(activation));
    const at::Tensor y = activate(x, activation);
    for (int64_t i = 0; i < x.size(0); ++i)
      REQUIRE(std::abs(y[i].item<double>() - formula(x[i].item<double>())) <= 1e-14);
    const auto function = [a = activation](const std::vector<at::Tensor>& in) {
      return activate(in[0], a);
    };
    REQUIRE(aifs::test::gradient_error(function, {x}) <= aifs::test::gradient_tolerance());
  }
}
