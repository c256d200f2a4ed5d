// SPDX-License-Identifier: Apache-2.0
// Built twice, the second time with AIFS_GPU_TEST for a GPU.
#include "model/layers/fused_mlp.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "model/network/encoder_processor_decoder.h"
#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;
using test::random_tensor;

namespace {

// Output and flat gradients of a small network.
struct Result {
  at::Tensor output, gradients;
};
struct Types {
  at::ScalarType weights, activations;
};
Result run_network(KernelChoice kernels, const at::Device& device, const Types& types,
                   int64_t channels, bool again = false, int64_t chunks = 1) {
  const FieldLayout layout = test::toy_layout();
  ModelOptions options;
  options.channels = channels;
  options.layers = 3;
  options.kernels = kernels;
  if (again) options.set_recompute(RecomputePolicy::kMlp);
  if (chunks > 1) {
    options.decoder.recompute = RecomputePolicy::kBlock;
    options.decoder.chunks = chunks;
  }
  const at::ScalarType weights = types.weights;
  ParameterSet parameters(weights, 3, types.activations);
  const auto graph = GraphTensors::create(test::random_graph({37, 11, 33, 66, 111}, 5),
                                          options.edge_attributes, weights)
                         .to(device);
  const EncoderProcessorDecoder network(parameters, options, graph, layout);
  uint64_t seed = 90;
  for (const Parameter& p : parameters.entries()) {
    if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.05);
  }
  parameters.flatten(device);
  const at::Tensor x = random_tensor({2, 2, 1, 37, 6}, 7).to(device, weights);
  const at::Tensor y = network.forward(x);
  (y * random_tensor(y.sizes(), 8).to(device, weights)).sum().backward();
  return {y.detach().cpu().to(at::kDouble), parameters.flat_gradients().cpu().to(at::kDouble)};
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace

#ifndef AIFS_GPU_TEST
TEST_CASE("gradients of every form of a fused MLP are central differences", "[fused_mlp]") {
  constexpr int64_t kSources = 9, kTargets = 7, kEdges = 40, c = 3;
  const auto edges = test::random_edge_index(kSources, kTargets, kEdges, 5);
  struct Form {
    FusedMlpPlan plan;
    std::vector<int64_t> row_counts;
    int64_t parts;
  };
  const std::vector<Form> forms{
      {{}, {5}, 1},
      {{.adds_rows = true}, {5, 5}, 1},
      {{.layer_norm_eps = 1e-5}, {5}, 1},
      {{.first = FirstProduct::kPair, .residual = true, .layer_norm_eps = 1e-5}, {5, 5}, 2},
      {{.first = FirstProduct::kTwice, .residual = true, .layer_norm_eps = 1e-5}, {5}, 2},
      {{.first = FirstProduct::kEdges, .edges = edges, .residual = true, .layer_norm_eps = 1e-5},
       {kTargets, kSources, kEdges},
       3},
      {{.first = FirstProduct::kEdges,
        .edges = edges,
        .residual = true,
        .layer_norm_eps = 1e-5,
        .rows_wanted = false,
        .hands_on_target = true},
       {kTargets, kSources, kEdges},
       3},
      {{.first = FirstProduct::kEdges,
        .edges = edges,
        .residual = true,
        .layer_norm_eps = 1e-5,
        .hands_on_target = true,
        .hands_on_source = true},
       {kTargets, kSources, kEdges},
       3}};
  for (const Form& form : forms) {
    INFO("form " << static_cast<int>(form.plan.first));
    std::vector<at::Tensor> inputs;
    for (const int64_t count : form.row_counts)
      inputs.push_back(random_tensor({count, c}, 20 + inputs.size()));
    const size_t num_rows = inputs.size();
    for (const int64_t in : {form.parts * c, c, c}) {
      inputs.push_back(0.5 * random_tensor({c, in}, 20 + inputs.size()));
      inputs.push_back(random_tensor({c}, 20 + inputs.size()));
    }
    if (form.plan.layer_norm_eps) {
      inputs.push_back(random_tensor({c}, 40));
      inputs.push_back(random_tensor({c}, 41));
    }
    const auto function = [&](const std::vector<at::Tensor>& in) {
      const auto end = in.begin() + static_cast<std::ptrdiff_t>(num_rows);
      FusedMlpWeights weights{{end, in.end()}, {}};
      for (size_t i = 0; i < 6; i += 2)
        weights.working.push_back(weights.parameters[i].detach());
      weights.working.push_back(weights.parameters[5].detach());
      const FusedMlpResult out = fused_mlp(form.plan, {in.begin(), end}, weights);
      std::vector<at::Tensor> results;
      for (const at::Tensor& result : {out.rows, out.sums, out.target, out.source}) {
        if (result.defined()) results.push_back(result.tanh());
      }
      return at::cat(results);
    };
    REQUIRE(test::gradient_error(function, inputs) <= test::gradient_tolerance());
  }
}

TEST_CASE("a network with fused kernels is the reference network", "[fused_mlp]") {
  const Result expected =
      run_network(KernelChoice::kReference, at::kCPU, {at::kDouble, at::kDouble}, 16);
  for (const int64_t chunks : {0, 1, 2, 5}) {
    const bool again = chunks % 2 == 0;
    const Result got = run_network(KernelChoice::kFused, at::kCPU, {at::kDouble, at::kDouble}, 16,
                                   again, std::max<int64_t>(chunks, 1));
    REQUIRE(relative_difference(got.output, expected.output) <= 1e-13);
    REQUIRE(relative_difference(got.gradients, expected.gradients) <= 1e-12);
  }
}

TEST_CASE("a result that nobody reads is not computed, its gradients are", "[fused_mlp]") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto gradients = [&](bool unread) {
    std::vector<at::Tensor> all{random_tensor({5, 3}, 1), random_tensor({5, 3}, 2),
                                random_tensor({4, 3}, 3), random_tensor({4}, 4),
                                random_tensor({3, 4}, 5), random_tensor({3}, 6)};
    for (const at::Tensor& x : all)
      x.set_requires_grad(true);
    const FusedMlpWeights weights{{all.begin() + 2, all.end()},
                                  {all[2].detach(), all[4].detach(), all[5].detach()}};
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    const at::Tensor rows =
        fused_mlp({.adds_rows = true, .unread = unread}, {all[0], all[1]}, weights).rows;
    at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
    // Rows that are not written hold NaN then.
    REQUIRE(at::equal(rows.isnan(), at::full_like(rows, unread ? nan : 0.0).isnan()));
    rows.backward(random_tensor({5, 3}, 7));
    std::vector<at::Tensor> result;
    for (const at::Tensor& x : all)
      result.push_back(x.grad());
    return result;
  };
  const auto expected = gradients(false), got = gradients(true);
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(at::equal(got[i], expected[i]));
}

TEST_CASE("results that nothing depends on cost no gradients", "[fused_mlp]") {
  constexpr int64_t kSources = 9, kTargets = 7, kEdges = 40, c = 3;
  const FusedMlpPlan plan{.first = FirstProduct::kEdges,
                          .edges = test::random_edge_index(kSources, kTargets, kEdges, 5),
                          .residual = true,
                          .layer_norm_eps = 1e-5,
                          .hands_on_target = true,
                          .hands_on_source = true};
  const auto gradients = [&](unsigned uses, bool zeros) {
    std::vector<at::Tensor> all{random_tensor({kTargets, c}, 1),
                                random_tensor({kSources, c}, 2),
                                random_tensor({kEdges, c}, 3),
                                random_tensor({4, 3 * c}, 4),
                                random_tensor({4}, 5),
                                random_tensor({c, 4}, 6),
                                random_tensor({c}, 7),
                                random_tensor({c}, 8),
                                random_tensor({c}, 9)};
    for (const at::Tensor& x : all)
      x.set_requires_grad(true);
    const FusedMlpWeights weights{{all.begin() + 3, all.end()},
                                  {all[3].detach(), all[5].detach(), all[6].detach()}};
    const FusedMlpResult out = fused_mlp(plan, {all[0], all[1], all[2]}, weights);
    at::Tensor loss = at::zeros({}, at::kDouble);
    unsigned bit = 1;
    for (const at::Tensor& result : {out.rows, out.sums, out.target, out.source}) {
      if (uses & bit) loss = loss + result.square().sum();
      if (zeros && !(uses & bit)) loss = loss + (0.0 * result).sum();
      bit *= 2;
    }
    loss.backward();
    std::vector<at::Tensor> result;
    for (const at::Tensor& x : all)
      result.push_back(x.grad());
    return result;
  };
  for (unsigned uses = 1; uses < 16; ++uses) {
    INFO("used: " << uses);
    const auto got = gradients(uses, false), expected = gradients(uses, true);
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i].defined()) {
        REQUIRE(at::allclose(got[i], expected[i], 1e-12, 1e-12));
      } else {
        REQUIRE((expected[i] == 0).all().item<bool>());
      }
    }
    REQUIRE(got[2].defined() == ((uses & 3) != 0));
    REQUIRE(got[0].defined() == ((uses & 7) != 0));
  }
}

TEST_CASE("a gated MLP has no fused kernels, and says so", "[fused_mlp]") {
  ParameterSet parameters(at::kFloat, 1);
  MlpOptions options;
  options.in = options.hidden = options.out = 4;
  options.kernels = KernelChoice::kFused;
  options.implementation = MlpImplementation::kSwiglu;
  REQUIRE_THROWS_AS(Mlp(ParameterScope(parameters), options), ConfigError);
}
#endif

TEST_CASE("fp32 and bfloat16 with fused kernels stay near the reference in fp64", "[fused_mlp]") {
  for (const int64_t channels : {24, 64, 136}) {
    INFO(channels << " channels");
    const Result expected =
        run_network(KernelChoice::kReference, at::kCPU, {at::kDouble, at::kDouble}, channels);
    const Result single =
        run_network(KernelChoice::kFused, kDevice, {at::kFloat, at::kFloat}, channels);
    REQUIRE(relative_difference(single.output, expected.output) <= 1e-5);
    REQUIRE(relative_difference(single.gradients, expected.gradients) <= 1e-4);
    const Result mixed =
        run_network(KernelChoice::kFused, kDevice, {at::kFloat, at::kBFloat16}, channels);
    REQUIRE(relative_difference(mixed.output, expected.output) <= 1e-2);
    REQUIRE(relative_difference(mixed.gradients, expected.gradients) <= 5e-2);
  }
}

#ifdef AIFS_GPU_TEST
TEST_CASE("the reference kernels on a GPU give the same", "[fused_mlp]") {
  const Result expected =
      run_network(KernelChoice::kReference, at::kCPU, {at::kDouble, at::kDouble}, 64);
  const Result exact =
      run_network(KernelChoice::kReference, kDevice, {at::kDouble, at::kDouble}, 64);
  REQUIRE(relative_difference(exact.gradients, expected.gradients) <= 1e-11);
  const Result single =
      run_network(KernelChoice::kReference, kDevice, {at::kFloat, at::kFloat}, 64, true);
  REQUIRE(relative_difference(single.output, expected.output) <= 1e-5);
  REQUIRE(relative_difference(single.gradients, expected.gradients) <= 1e-4);
  const Result mixed =
      run_network(KernelChoice::kReference, kDevice, {at::kFloat, at::kBFloat16}, 64);
  REQUIRE(relative_difference(mixed.gradients, expected.gradients) <= 5e-2);
}

TEST_CASE("a step on a GPU gives the same bits every time", "[fused_mlp]") {
  for (const KernelChoice kernels : {KernelChoice::kReference, KernelChoice::kFused}) {
    const Result first = run_network(kernels, kDevice, {at::kFloat, at::kBFloat16}, 64);
    const Result second = run_network(kernels, kDevice, {at::kFloat, at::kBFloat16}, 64);
    REQUIRE(at::equal(first.gradients, second.gradients));
    REQUIRE(at::equal(first.output, second.output));
  }
}
#endif
