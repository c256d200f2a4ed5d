// SPDX-License-Identifier: Apache-2.0
// Linear maps, norms and the MLPs of transformers with 16-bit rows on a GPU against the CPU in
// fp64.
#include <ATen/ATen.h>

#include "model/base/recompute.h"
#include "model/layers/residual_mlp.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

namespace {

const at::Device kDevice = at::Device(at::kCUDA, 0);

struct Result {
  at::Tensor output, d_input, gradients;
};

// A linear map and a norm behind it, run twice so that gradients add up.
Result run(const at::Device& device, at::ScalarType weights, at::ScalarType activations, int64_t in,
           int64_t out, bool with_bias) {
  ParameterSet parameters(weights, 3, activations);
  const ParameterScope scope(parameters);
  const Linear linear(scope / "linear", in, out, with_bias);
  const LayerNorm norm(scope / "norm", out);
  parameters.flatten(device);
  parameters.flat_values().add_(0.01);
  parameters.update_working_values();
  const at::Tensor x =
      random_tensor({70, in}, 5).to(at::kBFloat16).to(device, activations).set_requires_grad(true);
  at::Tensor y;
  for (int turn = 0; turn < 2; ++turn) {
    y = norm.forward(linear.forward(x));
    (y * random_tensor({70, out}, 6).to(device, activations)).sum().backward();
  }
  const auto exact = [](const at::Tensor& t) { return t.detach().cpu().to(at::kDouble); };
  return {exact(y), exact(x.grad()), exact(parameters.flat_gradients())};
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace

TEST_CASE("a linear map and a norm of 16-bit rows", "[mixed_products]") {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{64, 64}, {214, 1024}, {12, 89}}) {
    for (const bool with_bias : {true, false}) {
      INFO(in << " to " << out << (with_bias ? " with bias" : ""));
      const Result expected = run(at::kCPU, at::kDouble, at::kDouble, in, out, with_bias);
      for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
        const Result got = run(kDevice, at::kFloat, type, in, out, with_bias);
        REQUIRE(relative_difference(got.output, expected.output) <= 1e-2);
        REQUIRE(relative_difference(got.d_input, expected.d_input) <= 2e-2);
        REQUIRE(relative_difference(got.gradients, expected.gradients) <= 2e-2);
      }
    }
  }
}

TEST_CASE("the second half of a transformer's block, run again or not", "[mixed_products]") {
  const auto run_half = [](const at::Device& device, at::ScalarType weights,
                           at::ScalarType activations, int64_t channels, bool again) -> Result {
    ParameterSet parameters(weights, 3, activations);
    const ParameterScope scope(parameters);
    const LayerNorm norm(scope / "norm", channels);
    const Mlp mlp(scope / "mlp", {.in = channels,
                                  .hidden = 4 * channels,
                                  .out = channels,
                                  .extra_layers = 0,
                                  .layer_norm = false});
    parameters.flatten(device);
    parameters.update_working_values();
    const auto rows = [&](uint64_t seed) {
      return random_tensor({70, channels}, seed).to(at::kBFloat16).to(device, activations);
    };
    const at::Tensor x = rows(5).set_requires_grad(true);
    const TensorsFunction half = [&](const std::vector<at::Tensor>& in) {
      return std::vector{
          residual_mlp(in[0], 0.5 * in[0], {}, {.norm = norm, .mlp = mlp, .ends_part = again})};
    };
    const at::Tensor y = again ? recompute(half, {x})[0] : half({x})[0];
    (y * rows(6)).sum().backward();
    const auto exact = [](const at::Tensor& t) { return t.detach().cpu().to(at::kDouble); };
    return {exact(y), exact(x.grad()), exact(parameters.flat_gradients())};
  };
  for (const int64_t channels : {64, 1024}) {
    INFO(channels << " channels");
    const Result expected = run_half(at::kCPU, at::kDouble, at::kDouble, channels, false);
    const Result once = run_half(kDevice, at::kFloat, at::kBFloat16, channels, false);
    REQUIRE(relative_difference(once.output, expected.output) <= 1e-2);
    REQUIRE(relative_difference(once.d_input, expected.d_input) <= 2e-2);
    REQUIRE(relative_difference(once.gradients, expected.gradients) <= 2e-2);
    const Result twice = run_half(kDevice, at::kFloat, at::kBFloat16, channels, true);
    REQUIRE(at::equal(twice.output, once.output));
    REQUIRE(at::equal(twice.d_input, once.d_input));
    REQUIRE(at::equal(twice.gradients, once.gradients));
  }
}
