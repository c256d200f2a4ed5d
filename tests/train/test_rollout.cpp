// SPDX-License-Identifier: Apache-2.0
#include "train/rollout.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::train;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr int64_t kNodes = 12;

// A forcing, a prognostic and a diagnostic variable, and another prognostic one.
data::VariableTable variables() {
  return data::VariableTable({"f", "p", "d", "q"}, {{"f"}, {"d"}});
}

struct Network {
  model::ParameterSet parameters{at::kDouble, 3};
  model::EncoderProcessorDecoder network;

  explicit Network(const model::ModelOptions& options = small_options())
      : network(parameters, options,
                model::GraphTensors::create(test::random_graph({kNodes, 5, 20, 14, 30}, 5),
                                            options.edge_attributes, at::kDouble),
                layout()) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const model::Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }

  static model::ModelOptions small_options() {
    model::ModelOptions options;
    options.channels = 8;
    options.layers = 1;
    return options;
  }
  static model::FieldLayout layout() {
    model::FieldLayout layout;
    layout.num_inputs = 3;
    layout.outputs.names = {"p", "d", "q"};
    layout.input_prognostic = variables().input_prognostic();
    layout.output_prognostic = variables().output_prognostic();
    return layout;
  }
};

// Mean squared error over all steps, and the gradient of all parameters.
std::pair<double, at::Tensor> loss_and_gradient(Network& net, const ForecastExtras& extras) {
  const Forecaster forecaster(net.network, variables(), {}, at::kCPU, extras);
  net.parameters.zero_gradients();
  at::Tensor total = at::zeros({}, at::kDouble);
  forecaster.run(random_tensor({2, 5, 1, kNodes, 4}, 1), 3, [&](const ForecastStep& step) {
    total = total + (step.prediction - step.truth).square().mean();
  });
  total.backward();
  return {total.item<double>(), net.parameters.flat_gradients().clone()};
}

}  // namespace

TEST_CASE("the newest predictions push out the oldest inputs", "[rollout]") {
  const ForecastColumns columns(variables(), at::kCPU);
  const auto times = [](int64_t first, int64_t count, int64_t width) {
    return at::arange(first, first + count, at::kDouble)
        .view({1, count, 1, 1, 1})
        .expand({1, count, 1, 1, width});
  };
  struct Case {
    int64_t in, out;
    std::vector<double> expected;
  };
  for (const Case& c : {Case{2, 3, {4, 5}}, Case{2, 2, {3, 4}}, Case{3, 2, {3, 4, 5}}}) {
    const at::Tensor truth = at::full({1, c.out, 1, 1, 4}, -1.0, at::kDouble);
    const at::Tensor x =
        advance_inputs(times(1, c.in, 3), times(c.in + 1, c.out, 3), truth, columns);
    REQUIRE(max_difference(x.select(-1, 1).flatten(), at::tensor(c.expected, at::kDouble)) == 0.0);
    REQUIRE(x.select(1, c.in - 1).select(-1, 0).item<double>() == -1.0);  // a forcing: the truth
  }
}

TEST_CASE("outside the mask the truth replaces what was predicted", "[rollout]") {
  const ForecastColumns columns(variables(), at::kCPU);
  const at::Tensor prediction =
      at::tensor({10., 0., 11., 20., 0., 21.}, at::kDouble).view({1, 1, 1, 2, 3});
  const at::Tensor truth =
      at::tensor({1000., 100., 0., 101., 2000., 200., 0., 201.}, at::kDouble).view({1, 1, 1, 2, 4});
  const at::Tensor x = advance_inputs(at::zeros({1, 1, 1, 2, 3}, at::kDouble), prediction, truth,
                                      columns, at::tensor({1, 0}, at::kLong).to(at::kBool));
  const at::Tensor expected =
      at::tensor({1000., 10., 11., 2000., 200., 201.}, at::kDouble).view({1, 1, 1, 2, 3});
  REQUIRE(max_difference(x, expected) == 0.0);
}

TEST_CASE("forecasts go on from the truth outside the mask, and from themselves inside",
          "[rollout]") {
  Network net;
  at::Tensor mask = at::zeros({kNodes}, at::kBool);
  mask.slice(0, 3, 8).fill_(true);
  const at::NoGradGuard no_grad;
  const at::Tensor batch = random_tensor({2, 4, 1, kNodes, 4}, 1);
  const auto second = [&](const ForecastExtras& extras) {
    const Forecaster forecaster(net.network, variables(), {}, at::kCPU, extras);
    at::Tensor first, last;
    forecaster.run(batch, 2, [&](const ForecastStep& step) {
      (step.step == 0 ? first : last) = step.prediction;
    });
    return std::pair(first, last);
  };
  const auto [first, last] = second({.output_masks = {mask}});
  // Truth of f, p, q in place of the newest input, with what was predicted of p and q inside.
  at::Tensor newest = batch.select(1, 2).index_select(-1, at::tensor({0, 1, 3})).clone();
  for (int64_t n = 3; n < 8; ++n) {
    for (const auto& [input, output] : {std::pair(1, 0), std::pair(2, 2)})
      newest.select(2, n).select(-1, input).copy_(
          first.select(1, 0).select(2, n).select(-1, output));
  }
  const at::Tensor old = batch.select(1, 1).index_select(-1, at::tensor({0, 1, 3}));
  const at::Tensor expected = net.network.forward(at::stack({old, newest}, 1), {.step = 1});
  REQUIRE(max_difference(last, expected) == 0.0);
  // It matters: without a mask, and with one that is true everywhere, the forecast is another.
  REQUIRE(max_difference(last, second({}).second) > 1e-6);
  REQUIRE(max_difference(second({}).second,
                         second({.output_masks = {at::ones({kNodes}, at::kBool)}}).second) == 0.0);
}

TEST_CASE("steps that are run again give the same loss and gradients", "[rollout]") {
  Network net;
  const auto kept = loss_and_gradient(net, {});
  const auto again = loss_and_gradient(net, {.recompute_steps = true});
  REQUIRE(kept.first == again.first);
  REQUIRE(max_difference(kept.second, again.second) <=
          1e-13 * kept.second.abs().max().item<double>());
}

TEST_CASE("an ensemble makes its members of one sample, with the same noise in both passes",
          "[rollout]") {
  model::ModelOptions options = Network::small_options();
  options.processor.kind = model::BlockKind::kGraphTransformer;
  options.processor.heads = 2;
  options.ensemble = {.members = 3, .noise = model::NoiseKind::kConditioning};
  Network net(options);
  at::manual_seed(7);
  const auto kept = loss_and_gradient(net, {});
  at::manual_seed(7);
  const auto again = loss_and_gradient(net, {.recompute_steps = true});
  REQUIRE(kept.first == again.first);
  REQUIRE(max_difference(kept.second, again.second) <=
          1e-13 * kept.second.abs().max().item<double>());
  const Forecaster forecaster(net.network, variables(), {}, at::kCPU);
  forecaster.run(random_tensor({2, 3, 1, kNodes, 4}, 1), 1, [&](const ForecastStep& step) {
    REQUIRE(step.prediction.sizes() == at::IntArrayRef{2, 1, 3, kNodes, 3});
    REQUIRE(step.truth.size(2) == 1);
    REQUIRE(max_difference(step.prediction.select(2, 0), step.prediction.select(2, 1)) > 1e-6);
  });
}
