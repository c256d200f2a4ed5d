// SPDX-License-Identifier: Apache-2.0
#include "model/layers/layer_norm.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-14;

at::Tensor normalised(const at::Tensor& x) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-5).sqrt();
}

void shake(ParameterSet& parameters) {
  uint64_t seed = 40;
  for (const Parameter& p : parameters.entries())
    p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.5);
}

}  // namespace

TEST_CASE("a plain norm with and without bias", "[layer_norm]") {
  for (const bool bias : {true, false}) {
    ParameterSet parameters(at::kDouble, 1);
    const LayerNorm norm(ParameterScope(parameters) / "n", 5, {.bias = bias});
    shake(parameters);
    const at::Tensor x = random_tensor({3, 2, 5}, 1);
    at::Tensor expected = normalised(x) * parameters.at("n.weight").tensor;
    if (bias) expected = expected + parameters.at("n.bias").tensor;
    REQUIRE(parameters.contains("n.bias") == bias);
    REQUIRE(max_difference(norm.forward(x), expected) <= kRounding);
  }
}

TEST_CASE("a conditional norm shifts and scales row by row", "[layer_norm]") {
  ParameterSet parameters(at::kDouble, 1);
  const LayerNorm norm(ParameterScope(parameters) / "n", 5, {.condition_width = 3});
  const at::Tensor x = random_tensor({4, 5}, 1), c = random_tensor({4, 3}, 2);
  // Its maps start at zero.
  REQUIRE(max_difference(norm.forward(x, c), normalised(x)) <= kRounding);
  shake(parameters);
  const auto mapped = [&](const char* name) {
    const std::string prefix = concat("n.", name, ".");
    return at::linear(c, parameters.at(prefix + "weight").tensor,
                      parameters.at(prefix + "bias").tensor);
  };
  const at::Tensor expected = normalised(x) * (mapped("scale") + 1.0) + mapped("bias");
  REQUIRE(max_difference(norm.forward(x, c), expected) <= kRounding);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return norm.forward(in[0], in[1]);
  };
  REQUIRE(test::gradient_error(function, {x, c}) <= test::gradient_tolerance());
}

TEST_CASE("a conditional norm without its condition is an error", "[layer_norm]") {
  ParameterSet parameters(at::kDouble, 1);
  const LayerNorm norm(ParameterScope(parameters), 5, {.condition_width = 3});
  REQUIRE_THROWS_AS(norm.forward(random_tensor({4, 5}, 1)), Error);
  REQUIRE_THROWS_AS(norm.forward(random_tensor({4, 5}, 1), random_tensor({3, 3}, 2)), Error);
}
