// SPDX-License-Identifier: Apache-2.0
#include "model/layers/gnn.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;
constexpr int64_t kData = 9, kHidden = 5, kChannels = 4, kInputs = 7, kHiddenInputs = 3;
constexpr int64_t kOutputs = 2, kEdgeTrainable = 2;

// Reverses the order in which a graph lists its edges.
graph::Graph reversed(graph::Graph graph) {
  for (graph::EdgeSet& edges : graph.edge_sets) {
    std::reverse(edges.source_index.begin(), edges.source_index.end());
    std::reverse(edges.target_index.begin(), edges.target_index.end());
    for (auto& [name, attribute] : edges.attributes) {
      const std::vector<float> old = attribute.values;
      const auto width = static_cast<size_t>(attribute.width), rows = old.size() / width;
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < width; ++c)
          attribute.values[r * width + c] = old[(rows - 1 - r) * width + c];
      }
    }
  }
  return graph;
}

struct Parts {
  ParameterSet parameters{at::kDouble, 3};
  GraphTensors graph;
  GraphConvOptions options{.channels = kChannels, .hidden = kChannels};
  GnnEncoder encoder;
  GnnProcessor processor;
  GnnDecoder decoder;

  explicit Parts(const graph::Graph& plain, bool learnt_edges = true)
      : graph(GraphTensors::create(plain, {"edge_length", "edge_dirs"}, at::kDouble)),
        encoder(scope("encoder"), scope("encoder_edges"), options, graph.edges("data", "hidden"),
                kEdgeTrainable, kInputs, kHiddenInputs),
        processor(scope("processor"), scope("processor_edges"), options,
                  graph.edges("hidden", "hidden"), kEdgeTrainable, /*num_layers=*/2),
        decoder(scope("decoder"), scope("decoder_edges"), options, graph.edges("hidden", "data"),
                kEdgeTrainable, kOutputs) {
    uint64_t seed = 70;
    for (const Parameter& p : parameters.entries()) {
      const bool of_edges = p.name.find("trainable.trainable") != std::string::npos;
      if (p.trainable && (learnt_edges || !of_edges)) {
        p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.3);
      }
    }
  }

  // The whole chain; x_data holds `copies` replicas of the data nodes.
  at::Tensor run(const at::Tensor& x_data, const at::Tensor& x_hidden, int64_t copies) const {
    const Encoded encoded = encoder.forward(x_data, x_hidden, copies);
    return decoder.forward(processor.forward(encoded.latent, copies), encoded.data, copies);
  }

 private:
  ParameterScope scope(const char* name) { return ParameterScope(parameters) / name; }
};

graph::Graph example() {
  return test::random_graph({kData, kHidden, 24, 14, 30}, 5);
}

}  // namespace

TEST_CASE("a batch of a GNN is its samples one by one", "[gnn]") {
  const Parts parts(example());
  const at::Tensor x = random_tensor({3 * kData, kInputs}, 1);
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  const at::Tensor together = parts.run(x, hidden, 3);
  REQUIRE(together.sizes() == at::IntArrayRef{3 * kData, kOutputs});
  for (int64_t b = 0; b < 3; ++b) {
    REQUIRE(max_difference(together.narrow(0, b * kData, kData),
                           parts.run(x.narrow(0, b * kData, kData), hidden, 1)) <= kRounding);
  }
}

TEST_CASE("samples of a batch do not touch each other", "[gnn]") {
  const Parts parts(example());
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  const at::Tensor x = random_tensor({2 * kData, kInputs}, 1).set_requires_grad(true);
  parts.run(x, hidden, 2).narrow(0, 0, kData).sum().backward();
  REQUIRE(x.grad().narrow(0, 0, kData).abs().max().item<double>() > 0.0);
  REQUIRE(x.grad().narrow(0, kData, kData).abs().max().item<double>() == 0.0);
}

TEST_CASE("the order in which the graph lists its edges does not matter", "[gnn]") {
  const Parts one(example(), false), other(reversed(example()), false);
  const at::Tensor x = random_tensor({kData, kInputs}, 1);
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  REQUIRE(max_difference(one.run(x, hidden, 1), other.run(x, hidden, 1)) <= kRounding);
}

TEST_CASE("learnt edge features reach the output", "[gnn]") {
  const Parts with(example(), true), without(example(), false);
  const at::Tensor x = random_tensor({kData, kInputs}, 1);
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  REQUIRE(max_difference(with.run(x, hidden, 1), without.run(x, hidden, 1)) > 1e-3);
}

TEST_CASE("hidden nodes without data edges keep what they are", "[gnn]") {
  // The last hidden node has no incoming edge: its sum is zero for any input.
  const Parts parts(example());
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  const auto latent = [&](uint64_t seed) {
    return parts.encoder.forward(random_tensor({kData, kInputs}, seed), hidden, 1).latent;
  };
  REQUIRE(max_difference(latent(1)[kHidden - 1], latent(3)[kHidden - 1]) == 0.0);
  REQUIRE(max_difference(latent(1)[0], latent(3)[0]) > 1e-3);
}

TEST_CASE("the processor passes nodes and edge states from layer to layer", "[gnn]") {
  const Parts parts(example());
  ParameterSet copies(at::kDouble, 4);
  const ParameterScope scope = ParameterScope(copies) / "processor" / "proc";
  const EdgeFeatures features(ParameterScope(copies) / "processor_edges",
                              parts.graph.edges("hidden", "hidden"), kEdgeTrainable);
  const Mlp emb_edges(scope / 0 / "emb_edges", parts.options.mlp(features.width(), kChannels));
  const GraphConvBlock first(scope / 0, parts.options), second(scope / 1, parts.options);
  for (const Parameter& p : copies.entries())
    copies.assign(p.name, parts.parameters.at(p.name).tensor);

  const EdgeIndexPtr& edges = parts.graph.edges("hidden", "hidden").index;
  const at::Tensor x = random_tensor({kHidden, kChannels}, 1);
  const NodeAndEdgeState one = first.messages(x, x, emb_edges.forward(features.forward()), edges);
  const at::Tensor between = first.update_nodes(x, one.nodes);
  const NodeAndEdgeState two = second.messages(between, between, one.edges, edges);
  REQUIRE(max_difference(parts.processor.forward(x, 1), second.update_nodes(between, two.nodes)) <=
          kRounding);
}
