// SPDX-License-Identifier: Apache-2.0
// Every family in every part: number of parameters, gradients, and what is refused.
#include "model/network/parts.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "model/network/encoder_processor_decoder.h"
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

constexpr int64_t kData = 37, kHidden = 11;
constexpr test::GraphSizes kSizes{kData, kHidden, 33, 66, 111};

ModelOptions toy_options(BlockKind mappers, BlockKind processor) {
  ModelOptions options;
  options.channels = 16;
  options.layers = 2;
  options.encoder.kind = options.decoder.kind = mappers;
  options.processor.kind = processor;
  for (BlockOptions* block :
       std::initializer_list<BlockOptions*>{&options.encoder, &options.processor, &options.decoder})
    block->heads = 4;
  return options;
}

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  EncoderProcessorDecoder network;

  explicit Toy(const ModelOptions& options,
               const graph::Graph& graph = test::random_graph(kSizes, 5))
      : network(parameters, options,
                GraphTensors::create(graph, options.edge_attributes, at::kDouble), toy_layout()) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }
};

at::Tensor toy_input(int64_t ensemble = 1) {
  return random_tensor({2, 2, ensemble, kData, 6}, 1);
}

// A mesh between "hidden" and nothing finer: nodes hidden_2 below hidden_1.
graph::Graph two_level_graph() {
  graph::Graph graph = test::random_graph(kSizes, 5);
  const graph::Graph other = test::random_graph({kHidden, 4, 20, 10, 15}, 8);
  for (graph::NodeSet& nodes : graph.node_sets) {
    if (nodes.name == "hidden") nodes.name = "hidden_1";
  }
  graph.node_sets.push_back(other.nodes("hidden"));
  graph.node_sets.back().name = "hidden_2";
  const auto rename = [](graph::EdgeSet edges, const std::map<std::string, std::string>& names) {
    edges.source = names.at(edges.source);
    edges.target = names.at(edges.target);
    return edges;
  };
  std::vector<graph::EdgeSet> sets;
  for (const graph::EdgeSet& edges : graph.edge_sets)
    sets.push_back(rename(edges, {{"data", "data"}, {"hidden", "hidden_1"}}));
  for (const graph::EdgeSet& edges : other.edge_sets)
    sets.push_back(rename(edges, {{"data", "hidden_1"}, {"hidden", "hidden_2"}}));
  graph.edge_sets = sets;
  return graph;
}

// The nodes "data" and "other" on one mesh.
graph::Graph two_dataset_graph() {
  graph::Graph graph = test::random_graph(kSizes, 5);
  graph::Graph other = test::random_graph({20, kHidden, 30, 5, 40}, 9);
  graph.node_sets.push_back(other.nodes("data"));
  graph.node_sets.back().name = "other";
  for (graph::EdgeSet edges : other.edge_sets) {
    if (edges.source == edges.target) continue;
    (edges.source == "data" ? edges.source : edges.target) = "other";
    graph.edge_sets.push_back(edges);
  }
  return graph;
}

}  // namespace

TEST_CASE("the toys have the reference's numbers of parameters", "[parts]") {
  using K = BlockKind;
  const auto count = [](const ModelOptions& options) {
    return Toy(options).parameters.num_trainable();
  };
  REQUIRE(count(toy_options(K::kGnn, K::kGnn)) == 16613);
  REQUIRE(count(toy_options(K::kGraphTransformer, K::kGraphTransformer)) == 18229);
  REQUIRE(count(toy_options(K::kGraphTransformer, K::kTransformer)) == 16677);
  REQUIRE(count(toy_options(K::kTransformer, K::kTransformer)) == 14629);
}

TEST_CASE("any mapper goes with any processor, and all that is used gets a gradient", "[parts]") {
  using K = BlockKind;
  for (const K mapper : {K::kGnn, K::kGraphTransformer, K::kTransformer}) {
    for (const K processor :
         {K::kGnn, K::kGraphTransformer, K::kTransformer, K::kPointWise, K::kNone}) {
      INFO(enum_name(mapper) << " and " << enum_name(processor));
      ModelOptions options = toy_options(mapper, processor);
      options.latent_skip = processor != K::kNone;
      Toy toy(options);
      const at::Tensor y = toy.network.forward(toy_input());
      REQUIRE(y.sizes() == at::IntArrayRef{2, 1, 1, kData, 5});
      toy.parameters.zero_gradients();
      y.square().sum().backward();
      for (const Parameter& p : toy.parameters.entries()) {
        if (!p.trainable || !p.alias_of.empty()) continue;
        INFO(p.name);
        const double largest = toy.parameters.gradient(p).abs().max().item<double>();
        // Without a norm of keys their bias shifts all scores alike.
        const bool none = p.unused || p.name.ends_with("lin_key.bias");
        REQUIRE((none ? largest < 1e-12 : largest > 0.0));
      }
    }
  }
}

TEST_CASE("point-wise columns do not see each other", "[parts]") {
  const Toy toy(toy_options(BlockKind::kPointWise, BlockKind::kPointWise));
  REQUIRE_FALSE(toy.parameters.contains("node_attributes.latlons_hidden"));
  at::Tensor x = toy_input();
  const at::Tensor before = toy.network.forward(x).detach();
  x.select(3, 7).add_(1.0);
  const at::Tensor change = (toy.network.forward(x).detach() - before).abs().amax({0, 1, 2, 4});
  REQUIRE(change[7].item<double>() > 0.0);
  REQUIRE(change.sum().item<double>() == change[7].item<double>());
}

TEST_CASE("decoders know of their nodes what they are told", "[parts]") {
  ModelOptions options = toy_options(BlockKind::kGraphTransformer, BlockKind::kNone);
  options.decoder.target_features = {"coordinates", "forcings", "prognostics",
                                     "trainable_parameters", "encoded_data"};
  const Toy toy(options);
  const int64_t encoded = 2 * 6 + 12;
  REQUIRE(toy.parameters.at("decoder.0.emb_nodes_dst.weight").tensor.size(1) ==
          4 + 2 * 2 + 2 * 4 + 8 + encoded);
  // An autoencoder sees its input through the latent only.
  options.decoder.target_features = {"coordinates"};
  options.residual.kind = ResidualKind::kNone;
  REQUIRE(Toy(options).network.forward(toy_input()).isfinite().all().item<bool>());
}

TEST_CASE("a hierarchy doubles its channels, and joins its meshes both ways", "[parts]") {
  for (const BlockKind kind : {BlockKind::kGnn, BlockKind::kGraphTransformer}) {
    ModelOptions options = toy_options(kind, kind);
    options.hierarchy.meshes = {"hidden_1", "hidden_2"};
    options.hierarchy.upscale.kind = options.hierarchy.downscale.kind = kind;
    options.hierarchy.level_processing = true;
    Toy toy(options, two_level_graph());
    const at::Tensor y = toy.network.forward(toy_input());
    REQUIRE(y.sizes() == at::IntArrayRef{2, 1, 1, kData, 5});
    toy.parameters.zero_gradients();
    y.square().sum().backward();
    for (const char* name : {"upscale_graph_providers.hidden_1.trainable.trainable",
                             "downscale_graph_providers.hidden_1.trainable.trainable",
                             "down_level_processor_graph_providers.hidden_1.trainable.trainable",
                             "up_level_processor_graph_providers.hidden_1.trainable.trainable",
                             "processor_graph_provider.trainable.trainable"}) {
      INFO(name);
      const Parameter& p = toy.parameters.at(name);
      REQUIRE(toy.parameters.gradient(p).abs().max().item<double>() > 0.0);
    }
    const char* deep = kind == BlockKind::kGnn ? "processor.proc.0.node_mlp.mlp.0.weight"
                                               : "processor.proc.0.lin_self.weight";
    REQUIRE(toy.parameters.at(deep).tensor.size(0) == 32);
  }
}

TEST_CASE("members differ by their noise, and by nothing else", "[parts]") {
  ModelOptions options = toy_options(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
  options.ensemble = {.members = 3, .noise = NoiseKind::kConditioning};
  const Toy toy(options);
  REQUIRE(toy.network.num_members() == 3);
  const at::Tensor x = toy_input().repeat({1, 1, 3, 1, 1});
  at::Tensor noise = random_tensor({2, 3, kHidden, 4}, 9);
  noise.select(1, 2).copy_(noise.select(1, 0));
  const at::Tensor y = toy.network.forward(x, {.step = 0, .noise = noise});
  REQUIRE(max_difference(y.select(2, 0), y.select(2, 2)) <= 1e-13);
  REQUIRE(max_difference(y.select(2, 0), y.select(2, 1)) > 1e-3);
  // The first step is told apart from the later ones, which are alike.
  const auto at_step = [&](int64_t step) {
    return toy.network.forward(x, {.step = step, .noise = noise});
  };
  REQUIRE(max_difference(at_step(0), at_step(1)) > 1e-6);
  REQUIRE(max_difference(at_step(1), at_step(2)) == 0.0);
}

TEST_CASE("latents of several datasets become one", "[parts]") {
  const graph::Graph graph = two_dataset_graph();
  using A = Aggregation;
  for (const A aggregation : {A::kSum, A::kMean, A::kConcat}) {
    ModelOptions options = toy_options(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
    if (aggregation == A::kConcat) options.processor.channels = 32;
    NetworkPlan plan = NetworkPlan::single(options, toy_layout());
    plan.aggregation = aggregation;
    DatasetPlan second = plan.datasets[0];
    second.name = "other";
    second.encoder_name = second.decoder_name = "1";
    plan.datasets.push_back(second);
    ParameterSet parameters(at::kDouble, 3);
    const EncoderProcessorDecoder network(
        parameters, plan, GraphTensors::create(graph, options.edge_attributes, at::kDouble));
    const auto y = network.forward({toy_input(), random_tensor({2, 2, 1, 20, 6}, 2)});
    REQUIRE(y[0].sizes() == at::IntArrayRef{2, 1, 1, kData, 5});
    REQUIRE(y[1].sizes() == at::IntArrayRef{2, 1, 1, 20, 5});
    REQUIRE(parameters.contains("decoder.1.emb_nodes_src.weight") == (aggregation == A::kConcat));
    // Either dataset moves the forecast of the other.
    const auto moved = network.forward({toy_input(), random_tensor({2, 2, 1, 20, 6}, 3)});
    REQUIRE(max_difference(y[0], moved[0]) > 1e-6);
  }
}

TEST_CASE("datasets may share an encoder, but not its nodes and edges", "[parts]") {
  ModelOptions options = toy_options(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
  options.encoder.qk_norm = true;
  const auto count = [&](const std::string& second_encoder) {
    NetworkPlan plan = NetworkPlan::single(options, toy_layout());
    plan.node_trainable["other"] = plan.node_trainable["data"];
    DatasetPlan second = plan.datasets[0];
    second.name = "other";
    second.encoder_name = second_encoder;
    second.decoder_name = "1";
    plan.datasets.push_back(second);
    ParameterSet parameters(at::kDouble, 3);
    const EncoderProcessorDecoder network(
        parameters, plan,
        GraphTensors::create(two_dataset_graph(), options.edge_attributes, at::kDouble));
    const auto y = network.forward({toy_input(), random_tensor({2, 2, 1, 20, 6}, 2)});
    REQUIRE(y[1].isfinite().all().item<bool>());
    REQUIRE(parameters.contains("encoder_graph_provider.other.trainable.trainable"));
    int64_t in_encoder = 0;
    for (const Parameter& p : parameters.entries()) {
      if (p.name.starts_with("encoder.0.") && p.alias_of.empty()) in_encoder += p.tensor.numel();
    }
    return std::pair(parameters.num_trainable(), in_encoder);
  };
  const auto own = count("1"), shared = count("0");
  REQUIRE(shared.second == own.second);
  REQUIRE(shared.first == own.first - own.second);
}

TEST_CASE("an option that a kind of part does not read is refused", "[parts]") {
  const auto fault = [](const char* text) {
    ModelOptions options;
    try {
      config::read(options, config::parse_json(text, "test"), "model", {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  REQUIRE_THAT(fault(R"({"processor": {"heads": 4}})"),
               ContainsSubstring("'model.processor.heads': is an option of graph_transformer, "
                                 "transformer, not of gnn"));
  REQUIRE_THAT(fault(R"({"processor": {"kind": "graph_transformer", "window": 0}})"),
               ContainsSubstring("'model.processor.window'"));
  REQUIRE_THAT(fault(R"({"processor": {"kind": "point_wise", "mlp_implementation": "mlp"}})"),
               ContainsSubstring("'model.processor.mlp_implementation'"));
  REQUIRE_THAT(fault(R"({"processor": {"kind": "none", "chunks": 1}})"),
               ContainsSubstring("'model.processor.chunks'"));
  REQUIRE_THAT(fault(R"({"decoder": {"zero_extractor": false}})"),
               ContainsSubstring("'model.decoder.zero_extractor'"));
  REQUIRE(fault(R"({"processor": {"heads": 4, "kind": "transformer", "window": 2}})") == "none");
}

TEST_CASE("combinations that cannot be are refused by their path", "[parts]") {
  const auto refused = [](const char* path, const auto& change) {
    ModelOptions options = toy_options(BlockKind::kGraphTransformer, BlockKind::kTransformer);
    change(options);
    REQUIRE_THROWS_WITH(options.validate("model"), ContainsSubstring(path));
  };
  using O = ModelOptions;
  toy_options(BlockKind::kGraphTransformer, BlockKind::kTransformer).validate("model");
  refused("model.encoder.heads", [](O& o) { o.encoder.heads = 3; });
  refused("model.processor.heads", [](O& o) { o.processor.attention_channels = 18; });
  refused("model.decoder.kind", [](O& o) { o.decoder.kind = BlockKind::kGnn; });
  refused("model.encoder.kind", [](O& o) { o.encoder.kind = BlockKind::kNone; });
  refused("model.processor.channels", [](O& o) { o.processor.channels = 32; });
  refused("model.processor.rotary", [](O& o) { o.processor.rotary = true; });
  refused("model.decoder.offload", [](O& o) { o.decoder.offload = 1; });
  refused("model.encoder.edge_ranges", [](O& o) { o.encoder.edge_ranges = 2; });
  refused("model.ensemble.noise", [](O& o) {
    o.processor.kind = BlockKind::kGnn;
    o.ensemble.noise = NoiseKind::kConditioning;
  });
  BlockOptions block{.kind = BlockKind::kGnn, .qk_norm = true};
  REQUIRE_THROWS_WITH(block.validate("p"), ContainsSubstring("p.qk_norm"));
  block = {.kind = BlockKind::kGnn, .recompute = RecomputePolicy::kMlp, .offload = 2};
  REQUIRE_THROWS_WITH(block.validate("p"), ContainsSubstring("recompute block and full only"));
  block = {.kind = BlockKind::kTransformer, .recompute = RecomputePolicy::kBlock, .edge_ranges = 2};
  REQUIRE_THROWS_WITH(block.validate("p"), ContainsSubstring("p.edge_ranges"));
  block = {.kind = BlockKind::kTransformer, .softcap = 1.0};
  REQUIRE_THROWS_WITH(block.validate("p"), ContainsSubstring("flash attention only"));
  block = {.kind = BlockKind::kGraphTransformer, .window = 3};
  REQUIRE_THROWS_WITH(block.validate("p"), ContainsSubstring("p.window"));
  DecoderOptions decoder;
  decoder.target_features = {"coordinate"};
  REQUIRE_THROWS_WITH(decoder.validate("p"), ContainsSubstring("no 'coordinate'"));
  REQUIRE_THROWS_WITH((EnsembleOptions{.members = 2}.validate("p")),
                      ContainsSubstring("p.members"));
  HierarchyOptions hierarchy;
  hierarchy.meshes = {"one"};
  REQUIRE_THROWS_WITH(hierarchy.validate("p"), ContainsSubstring("p.meshes"));
  hierarchy.meshes = {"one", "two", "one"};
  REQUIRE_THROWS_WITH(hierarchy.validate("p"), ContainsSubstring("names 'one' twice"));
  hierarchy.meshes = {"one", "two"};
  hierarchy.upscale.kind = BlockKind::kPointWise;
  REQUIRE_THROWS_WITH(hierarchy.validate("p"), ContainsSubstring("p.upscale.kind"));
  ModelOptions model;
  model.hierarchy.meshes = {"one", "two"};
  model.validate("p");
  model.hierarchy.downscale.channels = 16;
  REQUIRE_THROWS_WITH(model.validate("p"), ContainsSubstring("p.hierarchy"));
  model.hierarchy.downscale.channels = 0;
  model.encoder.kind = model.decoder.kind = BlockKind::kPointWise;
  REQUIRE_THROWS_WITH(model.validate("p"), ContainsSubstring("p.hierarchy.meshes"));
}
