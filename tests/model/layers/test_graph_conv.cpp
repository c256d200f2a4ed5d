// SPDX-License-Identifier: Apache-2.0
// The oracle is message passing as it is written down: one edge after another, with concatenations.
#include "model/layers/graph_conv.h"

#include <ATen/ATen.h>

#include "tests/support/catch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kRounding = 1e-12;
constexpr int64_t kChannels = 4;

const GraphConvOptions kOptions{.channels = kChannels, .hidden = 6, .extra_layers = 1};

// A block, and its two MLPs once more under the same names and with the same values.
struct Block {
  ParameterSet parameters{at::kDouble, 3}, copies{at::kDouble, 4};
  GraphConvBlock block{ParameterScope(parameters), kOptions};
  Mlp node_mlp{ParameterScope(copies) / "node_mlp", kOptions.mlp(2 * kChannels, kChannels)};
  Mlp edge_mlp;

  Block() {
    MlpOptions edge = kOptions.mlp(3 * kChannels, kChannels);
    edge.hidden = kChannels;  // whatever the hidden ratio
    edge_mlp = Mlp(ParameterScope(copies) / "conv" / "edge_mlp", edge);
    for (const Parameter& p : parameters.entries())
      copies.assign(p.name, p.tensor);
  }
};

}  // namespace

TEST_CASE("messages are edge_mlp([target | source | edge]) + edge, summed at targets",
          "[graph_conv]") {
  const Block b;
  const auto edges = test::random_edge_index(7, 5, 25, 1);
  const at::Tensor target = random_tensor({5, kChannels}, 2);
  const at::Tensor source = random_tensor({7, kChannels}, 3);
  const at::Tensor e = random_tensor({25, kChannels}, 4);
  at::Tensor messages = at::empty_like(e), sums = at::zeros_like(target);
  for (int64_t i = 0; i < 25; ++i) {
    const auto to = edges->target[i].item<int64_t>(), from = edges->source[i].item<int64_t>();
    const at::Tensor row = at::cat({target[to], source[from], e[i]}).unsqueeze(0);
    messages[i] = b.edge_mlp.forward(row).squeeze(0).detach() + e[i];
    sums[to] += messages[i];
  }
  const NodeAndEdgeState state = b.block.messages(target, source, e, edges);
  REQUIRE(max_difference(state.edges, messages) <= kRounding);
  REQUIRE(max_difference(state.nodes, sums) <= kRounding);
  REQUIRE(state.nodes[4].abs().max().item<double>() == 0.0);  // no edge ends there
}

TEST_CASE("nodes become node_mlp([x | sum]) + x, sources node_mlp([x | x]) + x", "[graph_conv]") {
  const Block b;
  const at::Tensor x = random_tensor({5, kChannels}, 5), sum = random_tensor({5, kChannels}, 6);
  REQUIRE(max_difference(b.block.update_nodes(x, sum),
                         b.node_mlp.forward(at::cat({x, sum}, 1)) + x) <= kRounding);
  REQUIRE(max_difference(b.block.update_sources(x), b.node_mlp.forward(at::cat({x, x}, 1)) + x) <=
          kRounding);
}

TEST_CASE("gradients of a block are central differences", "[graph_conv]") {
  const Block b;
  const auto edges = test::random_edge_index(3, 3, 7, 7);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    const NodeAndEdgeState state = b.block.messages(in[0], in[0], in[1], edges);
    return at::cat({b.block.update_nodes(in[0], state.nodes), state.edges});
  };
  REQUIRE(test::gradient_error(
              function, {random_tensor({3, kChannels}, 8), random_tensor({7, kChannels}, 9)}) <=
          test::gradient_tolerance());
}
