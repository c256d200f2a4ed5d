// SPDX-License-Identifier: Apache-2.0
#include "model/network/encoder_processor_decoder.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/layers/gnn.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;
using test::toy_layout;

namespace {

constexpr double kRounding = 1e-12;

// The reference toy: 37 data and 11 hidden nodes, 33, 66 and 111 edges, six inputs, five outputs.
constexpr int64_t kData = 37, kHidden = 11;
constexpr test::GraphSizes kSizes{kData, kHidden, 33, 66, 111};

ModelOptions toy_options() {
  ModelOptions options;
  options.channels = 16;
  options.layers = 2;
  return options;
}

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  EncoderProcessorDecoder network;

  explicit Toy(const ModelOptions& options = toy_options(),
               const FieldLayout& layout = toy_layout())
      : network(parameters, options,
                GraphTensors::create(test::random_graph(kSizes, 5), options.edge_attributes,
                                     at::kDouble),
                layout) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }

  at::Tensor run(const at::Tensor& x) const { return network.forward(x).detach(); }
};

// The parts once more, under the same names and with the same values, and the way they are put
// together: rows (b, n), columns (time, variable) and then node features.
struct PartsOfToy {
  ParameterSet parameters{at::kDouble, 4};
  ParameterScope root{parameters};
  GraphTensors graph = GraphTensors::create(test::random_graph(kSizes, 5),
                                            toy_options().edge_attributes, at::kDouble);
  GraphConvOptions conv{.channels = 16, .hidden = 16};
  NodeAttributes data{root / "node_attributes", "data", graph.nodes("data"), 8};
  NodeAttributes hidden{root / "node_attributes", "hidden", graph.nodes("hidden"), 8};
  GnnEncoder encoder{root / "encoder" / 0,
                     root / "encoder_graph_provider" / "data",
                     conv,
                     graph.edges("data", "hidden"),
                     8,
                     24,
                     12};
  GnnProcessor processor{root / "processor",
                         root / "processor_graph_provider",
                         conv,
                         graph.edges("hidden", "hidden"),
                         8,
                         2};
  GnnDecoder decoder{root / "decoder" / 0,
                     root / "decoder_graph_provider" / "data",
                     conv,
                     graph.edges("hidden", "data"),
                     8,
                     5};

  explicit PartsOfToy(const ParameterSet& values) {
    for (const Parameter& p : values.entries())
      parameters.assign(p.name, p.tensor);
  }

  at::Tensor forward(const at::Tensor& x, bool latent_skip) const {
    const int64_t batch = x.size(0);
    std::vector<at::Tensor> rows;
    for (int64_t b = 0; b < batch; ++b) {
      const at::Tensor fields = x[b].select(1, 0);  // (T, N, V)
      rows.push_back(at::cat({fields[0], fields[1], data.forward()}, 1));
    }
    const Encoded encoded = encoder.forward(at::cat(rows), hidden.forward(), batch);
    at::Tensor latent = processor.forward(encoded.latent, batch);
    if (latent_skip) latent = latent + encoded.latent;
    at::Tensor y = decoder.forward(latent, encoded.data, batch).reshape({batch, 1, 1, kData, 5});
    y = y.detach().clone();
    y.narrow(-1, 0, 4).add_(x.narrow(1, 1, 1).narrow(-1, 2, 4));
    return y;
  }
};

at::Tensor toy_input(uint64_t seed, int64_t batch = 1, int64_t ensemble = 1) {
  return random_tensor({batch, 2, ensemble, kData, 6}, seed);
}

// The names of a three-layer MLP.
void expect_mlp(std::map<std::string, std::vector<int64_t>>& shapes, const std::string& prefix,
                int64_t in, int64_t out, bool norm = true) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> linears{
      {"mlp.0", {16, in}}, {"mlp.2", {16, 16}}, {"mlp.4", {out, 16}}};
  for (const auto& [name, shape] : linears) {
    shapes[prefix + name + ".weight"] = shape;
    shapes[prefix + name + ".bias"] = {shape[0]};
  }
  if (!norm) return;
  shapes[prefix + "layer_norm.weight"] = {out};
  shapes[prefix + "layer_norm.bias"] = {out};
}

}  // namespace

TEST_CASE("the toy has the reference's number of parameters", "[model]") {
  REQUIRE(Toy().parameters.num_trainable() == 16613);
}

TEST_CASE("names and shapes are those of Anemoi's state dict", "[model]") {
  std::map<std::string, std::vector<int64_t>> expected{
      {"node_attributes.latlons_data", {kData, 4}},
      {"node_attributes.latlons_hidden", {kHidden, 4}},
      {"node_attributes.trainable_tensors.data.trainable", {kData, 8}},
      {"node_attributes.trainable_tensors.hidden.trainable", {kHidden, 8}},
      {"encoder_graph_provider.data.trainable_layout_version", {}},
      {"processor_graph_provider.trainable_layout_version", {}},
      {"decoder_graph_provider.data.trainable_layout_version", {}},
      {"encoder_graph_provider.data.trainable.trainable", {33, 8}},
      {"processor_graph_provider.trainable.trainable", {66, 8}},
      {"decoder_graph_provider.data.trainable.trainable", {111, 8}}};
  expect_mlp(expected, "encoder.0.emb_edges.", 11, 16);
  expect_mlp(expected, "encoder.0.emb_nodes_src.", 2 * 6 + 12, 16);
  expect_mlp(expected, "encoder.0.emb_nodes_dst.", 12, 16);
  expect_mlp(expected, "processor.proc.0.emb_edges.", 11, 16);
  expect_mlp(expected, "decoder.0.emb_edges.", 11, 16);
  expect_mlp(expected, "decoder.0.node_data_extractor.", 16, 5, false);
  for (const char* block :
       {"encoder.0.proc.", "processor.proc.0.", "processor.proc.1.", "decoder.0.proc."}) {
    expect_mlp(expected, std::string(block) + "node_mlp.", 32, 16);
    expect_mlp(expected, std::string(block) + "conv.edge_mlp.", 48, 16);
  }
  const Toy toy;
  std::map<std::string, std::vector<int64_t>> ours;
  for (const Parameter& p : toy.parameters.entries())
    ours[p.name] = p.tensor.sizes().vec();
  REQUIRE(ours == expected);
}

TEST_CASE("a batch of a network is its samples one by one", "[model]") {
  const Toy toy;
  const at::Tensor x = toy_input(1, 2);
  const at::Tensor y = toy.run(x);
  REQUIRE(y.sizes() == at::IntArrayRef{2, 1, 1, kData, 5});
  for (int64_t b = 0; b < 2; ++b)
    REQUIRE(max_difference(y.narrow(0, b, 1), toy.run(x.narrow(0, b, 1))) <= kRounding);
}

TEST_CASE("ensemble members are forecasts of their own", "[model]") {
  const Toy toy;
  const at::Tensor x = toy_input(2, 2, 3);
  const at::Tensor y = toy.run(x);
  for (int64_t e = 0; e < 3; ++e)
    REQUIRE(max_difference(y.narrow(2, e, 1), toy.run(x.narrow(2, e, 1))) <= kRounding);
}

TEST_CASE("the residual adds the newest state to prognostic outputs only", "[model]") {
  ModelOptions without = toy_options();
  without.residual.kind = ResidualKind::kNone;
  const at::Tensor x = toy_input(3);
  const at::Tensor added = Toy().run(x) - Toy(without).run(x);
  REQUIRE(max_difference(added.narrow(-1, 0, 4), x.narrow(1, 1, 1).narrow(-1, 2, 4)) <= kRounding);
  REQUIRE(added.select(-1, 4).abs().max().item<double>() == 0.0);
}

TEST_CASE("every output time gets the residual of the newest input", "[model]") {
  FieldLayout layout = toy_layout();
  layout.times_out = 2;
  ModelOptions without = toy_options();
  without.residual.kind = ResidualKind::kNone;
  const at::Tensor x = toy_input(4);
  const at::Tensor y = Toy(toy_options(), layout).run(x);
  REQUIRE(y.sizes() == at::IntArrayRef{1, 2, 1, kData, 5});
  const at::Tensor added = y - Toy(without, layout).run(x);
  for (int64_t t = 0; t < 2; ++t) {
    REQUIRE(max_difference(added.narrow(1, t, 1).narrow(-1, 0, 4),
                           x.narrow(1, 1, 1).narrow(-1, 2, 4)) <= kRounding);
  }
}

TEST_CASE("the network is its parts put together, with or without the latent skip", "[model]") {
  for (const bool latent_skip : {true, false}) {
    ModelOptions options = toy_options();
    options.latent_skip = latent_skip;
    const Toy toy(options);
    const PartsOfToy parts(toy.parameters);
    const at::Tensor x = toy_input(5, 2);
    REQUIRE(max_difference(toy.run(x), parts.forward(x, latent_skip)) <= kRounding);
  }
}

TEST_CASE("bounding comes last, after the residual", "[model]") {
  ModelOptions bounded = toy_options();
  bounded.bounding = {{.kind = BoundingKind::kRelu, .variables = {"diagnostic", "q"}}};
  const at::Tensor x = toy_input(6);
  const at::Tensor free = Toy().run(x), y = Toy(bounded).run(x);
  REQUIRE(free.select(-1, 1).min().item<double>() < 0.0);
  for (const int64_t v : {1, 4})
    REQUIRE(max_difference(y.select(-1, v), free.select(-1, v).clamp_min(0)) == 0.0);
  REQUIRE(max_difference(y.select(-1, 0), free.select(-1, 0)) == 0.0);
}

TEST_CASE("without learnt features the network still runs", "[model]") {
  ModelOptions options = toy_options();
  options.trainable_parameters = {0, 0, 0, 0, 0};
  const Toy toy(options);
  REQUIRE(toy.run(toy_input(7)).isfinite().all().item<bool>());
  for (const Parameter& p : toy.parameters.entries())
    REQUIRE(p.name.find("trainable.trainable") == std::string::npos);
}

TEST_CASE("every parameter gets a gradient", "[model]") {
  Toy toy;
  toy.parameters.zero_gradients();
  toy.network.forward(toy_input(8)).square().sum().backward();
  for (const Parameter& p : toy.parameters.entries()) {
    if (!p.trainable) continue;
    INFO(p.name);
    REQUIRE(toy.parameters.gradient(p).abs().max().item<double>() > 0.0);
  }
}

TEST_CASE("fields of another layout are refused", "[model]") {
  const Toy toy;
  REQUIRE_THROWS_WITH(toy.run(random_tensor({1, 2, 1, kData, 5}, 9)),
                      ContainsSubstring("expected (B, 2, E, N, 6)"));
  REQUIRE_THROWS_AS(toy.run(random_tensor({1, 3, 1, kData, 6}, 9)), Error);
}
