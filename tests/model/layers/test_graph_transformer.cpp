// SPDX-License-Identifier: Apache-2.0
#include "model/layers/graph_transformer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
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
constexpr int64_t kData = 9, kHidden = 5, kChannels = 6, kInputs = 7, kHiddenInputs = 3;
constexpr int64_t kOutputs = 2, kEdgeTrainable = 2;

void shake(ParameterSet& parameters) {
  uint64_t seed = 70;
  for (const Parameter& p : parameters.entries()) {
    if (p.trainable && p.alias_of.empty()) {
      p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.3);
    }
  }
}

GraphTransformerOptions small_options() {
  return {.channels = kChannels, .heads = 2, .hidden = 8};
}

struct Parts {
  ParameterSet parameters{at::kDouble, 3};
  GraphTensors graph = GraphTensors::create(test::random_graph({kData, kHidden, 24, 14, 30}, 5),
                                            {"edge_length", "edge_dirs"}, at::kDouble);
  GraphTransformerEncoder encoder;
  GraphTransformerProcessor processor;
  GraphTransformerDecoder decoder;

  explicit Parts(const GraphTransformerOptions& options, int64_t latent_width = kChannels)
      : encoder(scope("encoder"), scope("encoder_edges"), options, graph.edges("data", "hidden"),
                kEdgeTrainable, kInputs, kHiddenInputs),
        processor(scope("processor"), scope("processor_edges"), options,
                  graph.edges("hidden", "hidden"), kEdgeTrainable, /*num_layers=*/2),
        decoder(scope("decoder"), scope("decoder_edges"), options, graph.edges("hidden", "data"),
                kEdgeTrainable, latent_width, kInputs, kOutputs) {
    shake(parameters);
  }

  at::Tensor run(const at::Tensor& x_data, const at::Tensor& x_hidden, int64_t copies) const {
    const Encoded encoded = encoder.forward(x_data, x_hidden, copies);
    return decoder.forward(processor.forward(encoded.latent, copies), encoded.data, copies);
  }

  // Result, and gradients of all parameters.
  std::vector<at::Tensor> result_and_gradients() {
    const at::Tensor y =
        run(random_tensor({2 * kData, kInputs}, 1), random_tensor({kHidden, kHiddenInputs}, 2), 2);
    (y * random_tensor(y.sizes(), 3)).sum().backward();
    std::vector<at::Tensor> all{y};
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable && p.alias_of.empty()) all.push_back(p.tensor.grad());
    }
    return all;
  }

 private:
  ParameterScope scope(const char* name) { return ParameterScope(parameters) / name; }
};

// The formulas of a block, edge by edge, with the tensors of `prefix`.
struct BlockByHand {
  const ParameterSet& parameters;
  std::string prefix;
  int64_t heads;

  at::Tensor get(const std::string& name) const { return parameters.at(prefix + name).tensor; }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, get(name + ".weight"), get(name + ".bias"));
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {x.size(-1)}, get(name + ".weight"), get(name + ".bias"));
  }
  at::Tensor per_head(const at::Tensor& rows, const std::string& name) const {
    const at::Tensor by_head = rows.view({rows.size(0), heads, -1});
    if (!parameters.contains(prefix + name + ".weight")) return by_head;
    return at::layer_norm(by_head, {by_head.size(-1)}, get(name + ".weight"));
  }

  at::Tensor operator()(const at::Tensor& x, const at::Tensor& u, const at::Tensor& u_source,
                        const at::Tensor& e, const EdgeIndex& edges) const {
    const at::Tensor q = per_head(linear(u, "lin_query"), "q_norm");
    const at::Tensor k = per_head(linear(u_source, "lin_key"), "k_norm");
    const at::Tensor v = linear(u_source, "lin_value").view({u_source.size(0), heads, -1});
    at::Tensor features = e;
    if (parameters.contains(prefix + "edge_pre_mlp.0.weight")) {
      features = at::gelu(linear(e, "edge_pre_mlp.0"));
    }
    const at::Tensor of_edge = linear(features, "lin_edge").view({e.size(0), heads, -1});
    at::Tensor out = at::zeros_like(q);
    for (int64_t i = 0; i < edges.num_targets; ++i) {
      std::vector<at::Tensor> scores, values;
      for (int64_t m = 0; m < edges.num_edges; ++m) {
        if (edges.target[m].item<int64_t>() != i) continue;
        const auto j = edges.source[m].item<int64_t>();
        scores.push_back((q[i] * (k[j] + of_edge[m])).sum(-1) /
                         std::sqrt(static_cast<double>(q.size(2))));
        values.push_back(v[j] + of_edge[m]);
      }
      if (scores.empty()) continue;
      out[i] = (at::softmax(at::stack(scores), 0).unsqueeze(-1) * at::stack(values)).sum(0);
    }
    const at::Tensor y =
        linear(out.reshape({x.size(0), -1}) + linear(u, "lin_self"), "projection") + x;
    const at::Tensor h = at::gelu(linear(norm(y, "layer_norm_mlp_dst"), "node_dst_mlp.mlp.0"));
    return linear(h, "node_dst_mlp.mlp.2") + y;
  }
};

}  // namespace

TEST_CASE("a block is its formulas, with and without norms, other widths, an edge MLP",
          "[graph_transformer]") {
  std::vector<GraphTransformerOptions> all(4, small_options());
  all[1].qk_norm = true;
  all[2].edge_pre_mlp = true;
  all[3].attention_channels = 8;
  all[3].heads = 4;
  for (size_t i = 0; i < all.size(); ++i) {
    INFO("options " << i);
    ParameterSet parameters(at::kDouble, 1);
    const GraphTransformerBlock block(ParameterScope(parameters), all[i], 3,
                                      GraphTransformerBlock::Use::kMapper);
    shake(parameters);
    const auto edges = test::random_edge_index(9, 5, 30, 5);
    const at::Tensor x = random_tensor({5, kChannels}, 1),
                     source = random_tensor({9, kChannels}, 2);
    const at::Tensor e = random_tensor({30, 3}, 3);
    const BlockByHand hand{parameters, "", all[i].heads};
    const at::Tensor u = block.norm_targets(x, {}).normed, u_source = block.norm_sources(source);
    REQUIRE(max_difference(u, hand.norm(x, "layer_norm_attention")) <= kRounding);
    REQUIRE(max_difference(u_source, hand.norm(source, "layer_norm_attention_src")) <= kRounding);
    const at::Tensor got = block.forward(x, block.targets(u), block.sources(u_source),
                                         block.edge_features(e), edges, {}, /*ends_part=*/false);
    REQUIRE(max_difference(got, hand(x, u, u_source, e, *edges)) <= kRounding);
    const auto [sources, targets] = block.both(u);
    REQUIRE(max_difference(sources.key, block.sources(u).key) <= kRounding);
    REQUIRE(max_difference(sources.value, block.sources(u).value) <= kRounding);
    REQUIRE(max_difference(targets.query, block.targets(u).query) <= kRounding);
    REQUIRE(max_difference(targets.self, block.targets(u).self) <= kRounding);
  }
}

TEST_CASE("the encoder hands its data rows on, the processor chains its blocks",
          "[graph_transformer]") {
  const Parts parts(small_options());
  const at::Tensor x = random_tensor({kData, kInputs}, 1);
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  REQUIRE(parts.encoder.forward(x, hidden, 1).data.is_same(x));
  const at::Tensor latent = random_tensor({kHidden, kChannels}, 3);
  const EdgeTensors& edges = parts.graph.edges("hidden", "hidden");
  const at::Tensor e = at::cat(
      {edges.attributes, parts.parameters.at("processor_edges.trainable.trainable").tensor}, 1);
  at::Tensor expected = latent;
  for (const char* layer : {"processor.proc.0.", "processor.proc.1."}) {
    const BlockByHand hand{parts.parameters, layer, 2};
    const at::Tensor u = hand.norm(expected, "layer_norm_attention");
    expected = hand(expected, u, u, e, *edges.index);
  }
  REQUIRE(max_difference(parts.processor.forward(latent, 1), expected) <= kRounding);
}

TEST_CASE("a batch of a graph transformer is its samples one by one", "[graph_transformer]") {
  const Parts parts(small_options());
  const at::Tensor x = random_tensor({3 * kData, kInputs}, 1);
  const at::Tensor hidden = random_tensor({kHidden, kHiddenInputs}, 2);
  const at::Tensor together = parts.run(x, hidden, 3);
  REQUIRE(together.sizes() == at::IntArrayRef{3 * kData, kOutputs});
  for (int64_t b = 0; b < 3; ++b) {
    REQUIRE(max_difference(together.narrow(0, b * kData, kData),
                           parts.run(x.narrow(0, b * kData, kData), hidden, 1)) <= kRounding);
  }
}

TEST_CASE("neither chunks nor recomputation change result or gradients", "[graph_transformer]") {
  const std::vector<at::Tensor> expected = Parts(small_options()).result_and_gradients();
  for (const RecomputePolicy policy : {RecomputePolicy::kNone, RecomputePolicy::kMlp,
                                       RecomputePolicy::kBlock, RecomputePolicy::kFull}) {
    for (const int64_t chunks : {1, 3}) {
      INFO(enum_name(policy) << ", " << chunks << " chunks");
      GraphTransformerOptions options = small_options();
      options.recompute = policy;
      options.chunks = chunks;
      const std::vector<at::Tensor> ours = Parts(options).result_and_gradients();
      REQUIRE(max_difference(ours[0], expected[0]) <= 1e-14);
      for (size_t i = 1; i < ours.size(); ++i)
        REQUIRE(max_difference(ours[i], expected[i]) <= kRounding);
    }
  }
}

TEST_CASE("the chain of graph transformer blocks has the gradients of finite differences",
          "[graph_transformer]") {
  GraphTransformerOptions options = small_options();
  options.qk_norm = true;
  options.edge_pre_mlp = true;
  const Parts parts(options);
  const auto function = [&](const std::vector<at::Tensor>& in) {
    return parts.run(in[0], in[1], 1);
  };
  REQUIRE(test::gradient_error(function, {random_tensor({kData, kInputs}, 1),
                                          random_tensor({kHidden, kHiddenInputs}, 2)}) <=
          test::gradient_tolerance());
}

TEST_CASE("a condition moves the norms of a processor", "[graph_transformer]") {
  GraphTransformerOptions options = small_options();
  options.norm.condition_width = 3;
  ParameterSet parameters(at::kDouble, 3);
  const ParameterScope root(parameters);
  const auto graph = GraphTensors::create(test::random_graph({kData, kHidden, 24, 14, 30}, 5),
                                          {"edge_length"}, at::kDouble);
  const GraphTransformerProcessor processor(root / "p", root / "e", options,
                                            graph.edges("hidden", "hidden"), 0, 1);
  const at::Tensor x = random_tensor({kHidden, kChannels}, 1);
  const at::Tensor a = random_tensor({kHidden, 3}, 2), b = random_tensor({kHidden, 3}, 3);
  REQUIRE(max_difference(processor.forward(x, 1, a), processor.forward(x, 1, b)) == 0.0);
  shake(parameters);
  REQUIRE(max_difference(processor.forward(x, 1, a), processor.forward(x, 1, b)) > 1e-3);
  REQUIRE_THROWS_AS(processor.forward(x, 1), Error);
}

TEST_CASE("rows of another width are embedded first", "[graph_transformer]") {
  const Parts parts(small_options(), 2 * kChannels);
  REQUIRE(parts.parameters.at("decoder.emb_nodes_src.weight").tensor.sizes() ==
          at::IntArrayRef{kChannels, 2 * kChannels});
  const at::Tensor y = parts.decoder.forward(random_tensor({kHidden, 2 * kChannels}, 1),
                                             random_tensor({kData, kInputs}, 2), 1);
  REQUIRE(y.sizes() == at::IntArrayRef{kData, kOutputs});
}

TEST_CASE("the extractor can start at zero", "[graph_transformer]") {
  GraphTransformerOptions options = small_options();
  options.zero_extractor = true;
  ParameterSet parameters(at::kDouble, 3);
  const ParameterScope root(parameters);
  const auto graph = GraphTensors::create(test::random_graph({kData, kHidden, 24, 14, 30}, 5),
                                          {"edge_length"}, at::kDouble);
  const GraphTransformerDecoder decoder(root / "d", root / "e", options,
                                        graph.edges("hidden", "data"), 0, kChannels, kInputs, 2);
  const at::Tensor y = decoder.forward(random_tensor({kHidden, kChannels}, 1),
                                       random_tensor({kData, kInputs}, 2), 1);
  REQUIRE(y.abs().max().item<double>() == 0.0);
}
