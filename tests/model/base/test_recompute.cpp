// SPDX-License-Identifier: Apache-2.0
#include "model/base/recompute.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "model/network/encoder_processor_decoder.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::random_tensor;

namespace {

// Gradients of a small network, flat.
at::Tensor network_gradients(bool again, int64_t batch) {
  FieldLayout layout;
  layout.num_inputs = 2;
  layout.outputs.names = {"p", "q"};
  layout.input_prognostic = layout.output_prognostic = {0, 1};
  ModelOptions options;
  options.channels = 8;
  options.layers = 3;
  if (again) options.set_recompute(RecomputePolicy::kMlp);
  ParameterSet parameters(at::kDouble, 3);
  const auto graph = GraphTensors::create(test::random_graph({37, 11, 33, 66, 111}, 5),
                                          options.edge_attributes, at::kDouble);
  const EncoderProcessorDecoder network(parameters, options, graph, layout);
  parameters.flatten(at::kCPU);
  for (int pass = 0; pass < 2; ++pass)  // gradients add up
    network.forward(random_tensor({batch, 2, 1, 37, 2}, 7)).square().sum().backward();
  return parameters.flat_gradients();
}

}  // namespace

TEST_CASE("a part knows when its results are read by nobody", "[recompute]") {
  std::vector<bool> inner_unread, outer_unread;
  const TensorsFunction inner = [&](const std::vector<at::Tensor>& in) {
    inner_unread.push_back(results_unread());
    return std::vector{in[0].square()};
  };
  const TensorsFunction outer = [&](const std::vector<at::Tensor>& in) {
    outer_unread.push_back(results_unread());
    return std::vector{recompute(inner, in)[0].square()};
  };
  const at::Tensor x = random_tensor({3}, 1).set_requires_grad(true);
  recompute(outer, {x})[0].sum().backward();
  REQUIRE(outer_unread == std::vector{false, true});
  // Run by the outer part, by that again (which reads its results), and for its own gradients.
  REQUIRE(inner_unread == std::vector{false, false, true});
  REQUIRE_FALSE(results_unread());
}

TEST_CASE("what nothing depends on gets no gradient when a part runs again", "[recompute]") {
  const TensorsFunction part = [](const std::vector<at::Tensor>& in) {
    return std::vector{in[0].square(), in[1].square()};
  };
  const at::Tensor a = random_tensor({3}, 1).set_requires_grad(true);
  const at::Tensor b = random_tensor({3}, 2).set_requires_grad(true);
  recompute(part, {a, b})[0].sum().backward();
  REQUIRE(at::equal(a.grad(), 2.0 * a.detach()));
  REQUIRE_FALSE(b.grad().defined());
}

TEST_CASE("a part that runs again has the same results and gradients", "[recompute]") {
  at::Tensor weight = random_tensor({4, 4}, 1).set_requires_grad(true);
  int calls = 0;
  const TensorsFunction part = [&](const std::vector<at::Tensor>& in) {
    ++calls;
    const at::Tensor y = at::mm(in[0], weight).tanh();
    return std::vector{y, y * in[1]};
  };
  at::Tensor a = random_tensor({3, 4}, 2).set_requires_grad(true);
  const at::Tensor b = random_tensor({3, 4}, 3);  // needs no gradient
  const auto loss_of = [](const std::vector<at::Tensor>& out) {
    return (out[0].square() + out[1]).sum();
  };
  const at::Tensor plain = loss_of(part({a, b}));
  plain.backward();
  const at::Tensor of_a = a.grad().clone(), of_weight = weight.grad().clone();
  a.mutable_grad().zero_();
  weight.mutable_grad().zero_();
  calls = 0;
  const at::Tensor again = loss_of(recompute(part, {a, b}));
  REQUIRE(calls == 1);
  REQUIRE(at::equal(again, plain));
  again.backward();
  REQUIRE(calls == 2);
  REQUIRE(at::equal(a.grad(), of_a));
  REQUIRE(at::equal(weight.grad(), of_weight));
}

TEST_CASE("parameters get gradients though no input needs one", "[recompute]") {
  at::Tensor weight = random_tensor({2, 2}, 4).set_requires_grad(true);
  const at::Tensor x = random_tensor({3, 2}, 5);
  const TensorsFunction part = [&](const auto& in) { return std::vector{at::mm(in[0], weight)}; };
  recompute(part, {x})[0].sum().backward();
  REQUIRE(test::max_difference(weight.grad(), x.sum(0).unsqueeze(1).expand({2, 2})) <= 1e-15);
}

TEST_CASE("a result that nobody uses costs no gradient", "[recompute]") {
  at::Tensor x = random_tensor({3}, 6).set_requires_grad(true);
  const TensorsFunction part = [](const auto& in) { return std::vector{in[0] * 2.0, in[0] * 3.0}; };
  recompute(part, {x})[1].sum().backward();
  REQUIRE(test::max_difference(x.grad(), at::full({3}, 3.0, at::kDouble)) == 0.0);
}

TEST_CASE("without gradients a part just runs", "[recompute]") {
  const at::NoGradGuard no_grad;
  const at::Tensor x = random_tensor({3}, 8);
  REQUIRE(recompute([](const auto& in) { return in; }, {x})[0].is_same(x));
}

// A tensor with several uses gets its gradients in another order.
TEST_CASE("a network that recomputes has the same gradients", "[recompute]") {
  for (const int64_t batch : {1, 2}) {
    const at::Tensor expected = network_gradients(false, batch);
    REQUIRE(test::max_difference(network_gradients(true, batch), expected) <=
            1e-13 * expected.abs().max().item<double>());
  }
}
