// SPDX-License-Identifier: Apache-2.0
#include "model/layers/mlp.h"

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-13;  // a few layers of sums of tens of numbers of size 1

struct Built {
  ParameterSet parameters{at::kDouble, 3};
  Mlp mlp;

  explicit Built(const MlpOptions& options) : mlp(ParameterScope(parameters) / "net", options) {
    // Norms and biases must matter too.
    uint64_t seed = 50;
    for (const Parameter& p : parameters.entries())
      p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.3);
  }

  at::Tensor tensor(const std::string& name) const { return parameters.at("net." + name).tensor; }
};

std::vector<MlpImplementation> implementations() {
  std::vector<MlpImplementation> all;
  for (const auto& [value, name] : EnumNames<MlpImplementation>::table)
    all.push_back(value);
  return all;
}

// Returns what a layer multiplies its value part with, element by element.
double gate(MlpImplementation kind, double x) {
  const double sigmoid = 1.0 / (1.0 + std::exp(-x));
  switch (kind) {
    case MlpImplementation::kGlu:
      return sigmoid;
    case MlpImplementation::kSwiglu:
      return x * sigmoid;
    case MlpImplementation::kReglu:
      return std::max(x, 0.0);
    default:
      return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  }
}

at::Tensor gated(MlpImplementation kind, const at::Tensor& x) {
  at::Tensor y = x.detach().clone().contiguous();
  double* values = y.data_ptr<double>();
  for (int64_t i = 0; i < y.numel(); ++i)
    values[i] = gate(kind, values[i]);
  return y;
}

at::Tensor linear(const Built& net, const std::string& name, const at::Tensor& x) {
  return at::matmul(x, net.tensor(name + ".weight").t()) + net.tensor(name + ".bias");
}

}  // namespace

TEST_CASE("a plain MLP is linear, GELU, ..., linear, norm", "[mlp]") {
  const Built net({.in = 4, .hidden = 6, .out = 3, .extra_layers = 1});
  const at::Tensor x = random_tensor({5, 4}, 1);
  at::Tensor h = gated(MlpImplementation::kMlp, linear(net, "mlp.0", x));
  h = gated(MlpImplementation::kMlp, linear(net, "mlp.2", h));
  h = linear(net, "mlp.4", h).detach();
  const at::Tensor centred = h - h.mean(1, true);
  const at::Tensor variance = centred.square().mean(1, true);
  const at::Tensor y = centred / (variance + 1e-5).sqrt() * net.tensor("layer_norm.weight") +
                       net.tensor("layer_norm.bias");
  REQUIRE(max_difference(net.mlp.forward(x), y) <= kRounding);
}

TEST_CASE("a gated MLP multiplies gate and value in every hidden layer", "[mlp]") {
  for (const MlpImplementation kind : implementations()) {
    if (kind == MlpImplementation::kMlp) continue;
    INFO(enum_name(kind));
    const Built net({.in = 4,
                     .hidden = 6,
                     .out = 3,
                     .extra_layers = 1,
                     .layer_norm = false,
                     .implementation = kind});
    const at::Tensor x = random_tensor({5, 4}, 1);
    at::Tensor h = x;
    for (const char* layer : {"mlp.0", "mlp.1"}) {
      h = gated(kind, linear(net, concat(layer, ".gate_proj"), h)) *
          linear(net, concat(layer, ".value_proj"), h);
    }
    REQUIRE(max_difference(net.mlp.forward(x), linear(net, "mlp.2", h)) <= kRounding);
    REQUIRE_FALSE(net.parameters.contains("net.layer_norm.weight"));
  }
}

TEST_CASE("the number of linears is extra_layers + 2", "[mlp]") {
  for (const int64_t extra : {0, 1, 3}) {
    const Built net({.in = 2, .hidden = 3, .out = 4, .extra_layers = extra, .layer_norm = false});
    REQUIRE(static_cast<int64_t>(net.parameters.entries().size()) == 2 * (extra + 2));
    REQUIRE(net.tensor(concat("mlp.", 2 * (extra + 1), ".weight")).sizes() ==
            at::IntArrayRef{4, 3});
  }
}

TEST_CASE("the forms without concatenation equal the plain one", "[mlp]") {
  const auto edges = test::random_edge_index(9, 5, 40, 2);
  const at::Tensor target = random_tensor({5, 4}, 3), source = random_tensor({9, 4}, 4);
  const at::Tensor e = random_tensor({40, 4}, 5), other = random_tensor({5, 4}, 6);
  for (const MlpImplementation kind : implementations()) {
    for (const int64_t extra : {0, 2}) {
      INFO(enum_name(kind) << ", " << extra << " extra layers");
      MlpOptions options{
          .in = 8, .hidden = 6, .out = 3, .extra_layers = extra, .implementation = kind};
      const Built pair(options);
      REQUIRE(max_difference(pair.mlp.forward_pair(target, other),
                             pair.mlp.forward(at::cat({target, other}, 1))) <= kRounding);
      REQUIRE(max_difference(pair.mlp.forward_twice(target),
                             pair.mlp.forward(at::cat({target, target}, 1))) <= kRounding);
      options.in = 12;
      const Built triple(options);
      const at::Tensor rows = at::cat(
          {target.index_select(0, edges->target), source.index_select(0, edges->source), e}, 1);
      REQUIRE(max_difference(triple.mlp.forward_edges(target, source, e, edges),
                             triple.mlp.forward(rows)) <= kRounding);
    }
  }
}

TEST_CASE("gradients of all forms are central differences", "[mlp]") {
  const auto edges = test::random_edge_index(4, 3, 9, 7);
  for (const MlpImplementation kind : implementations()) {
    INFO(enum_name(kind));
    const MlpOptions options{
        .in = 6, .hidden = 3, .out = 3, .extra_layers = 0, .implementation = kind};
    const Built net(options);
    const auto by_edges = [&](const std::vector<at::Tensor>& in) {
      return net.mlp.forward_edges(in[0], in[1], in[2], edges);
    };
    REQUIRE(test::gradient_error(by_edges, {random_tensor({3, 2}, 8), random_tensor({4, 2}, 9),
                                            random_tensor({9, 2}, 10)}) <=
            test::gradient_tolerance());
    const auto by_pair = [&](const std::vector<at::Tensor>& in) {
      return net.mlp.forward_pair(in[0], in[1]) + net.mlp.forward_twice(in[0]);
    };
    REQUIRE(test::gradient_error(by_pair, {random_tensor({3, 3}, 11), random_tensor({3, 3}, 12)}) <=
            test::gradient_tolerance());
  }
}

TEST_CASE("all forms give the parameters the same gradients", "[mlp]") {
  const at::Tensor a = random_tensor({5, 3}, 13), b = random_tensor({5, 3}, 14);
  const at::Tensor weights = random_tensor({5, 2}, 15);
  for (const MlpImplementation kind : implementations()) {
    INFO(enum_name(kind));
    const MlpOptions options{.in = 6, .hidden = 4, .out = 2, .implementation = kind};
    Built plain(options), pair(options);
    plain.parameters.flatten(at::kCPU);
    pair.parameters.flatten(at::kCPU);
    (plain.mlp.forward(at::cat({a, b}, 1)) * weights).sum().backward();
    (pair.mlp.forward_pair(a, b) * weights).sum().backward();
    REQUIRE(plain.parameters.flat_gradients().abs().max().item<double>() > 0.01);
    REQUIRE(max_difference(plain.parameters.flat_gradients(), pair.parameters.flat_gradients()) <=
            10 * kRounding);
  }
}
