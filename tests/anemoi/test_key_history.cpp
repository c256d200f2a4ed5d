// SPDX-License-Identifier: Apache-2.0
// Names and shapes are those of models that anemoi-models 0.4.2, 0.9.3 and 0.11.2 built (of 0.3.1:
// its sources), and of the same ones in 0.19; the order of features of edges is that of Anemoi's
// migration trainable_edge_perm_fix.
#include "anemoi/key_history.h"

#include <sstream>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using anemoi::KeyHistory;

namespace {

const std::vector<float> kSix{0, 1, 2, 3, 4, 5};

TensorEntry tensor(const std::vector<int64_t>& shape) {
  return {DType::kF32, shape, std::as_bytes(std::span(kSix))};
}

// (6) edges from data to hidden nodes, whose targets descend; the other way, and among hidden ones.
NamedTensors graph_of(const std::vector<int32_t>& index) {
  NamedTensors graph("file");
  for (const char* ends : {"data_to_hidden", "hidden_to_hidden", "hidden_to_data"}) {
    graph.add(concat("edges/", ends, "/edge_index"),
              {DType::kI32, {2, 6}, std::as_bytes(std::span(index))});
  }
  return graph;
}
const std::vector<int32_t> kIndex{0, 1, 2, 3, 4, 5, 2, 2, 1, 1, 0, 0};

// The present name of one tensor beside others.
std::vector<std::string> present(const std::vector<std::pair<std::string, size_t>>& dimensions) {
  NamedTensors model("file");
  for (const auto& [name, count] : dimensions) {
    model.add(name, tensor(count == 1 ? std::vector<int64_t>{6} : std::vector<int64_t>{6, 1}));
  }
  return KeyHistory().present(model, graph_of(kIndex)).names();
}

std::string only(const std::string& name) {
  const std::vector<std::string> names = present({{name, 2}});
  return names.empty() ? "" : names.back();
}

}  // namespace

TEST_CASE("names of earlier releases are those of today") {
  for (const auto& [before, now] : std::map<std::string, std::string>{
           {"pre_processors.processors.normalizer._norm_mul",
            "pre_processors.data.processors.normalizer._norm_mul"},
           {"model.trainable_data.trainable",
            "model.node_attributes.trainable_tensors.data.trainable"},
           {"model.node_attributes.data.latlons_hidden", "model.node_attributes.latlons_hidden"},
           {"model.boundings.2.norm_min_val", "model.boundings.data.2.norm_min_val"},
           {"model.encoder.edge_inc", "model.encoder_graph_provider.data.trainable_layout_version"},
           {"model.encoder.trainable.trainable",
            "model.encoder_graph_provider.data.trainable.trainable"},
           {"model.processor.trainable.trainable",
            "model.processor_graph_provider.trainable.trainable"},
           {"model.decoder_graph_provider.trainable.trainable",
            "model.decoder_graph_provider.data.trainable.trainable"},
           {"model.encoder.emb_nodes_dst.weight", "model.encoder.0.emb_nodes_dst.weight"},
           {"model.decoder.data.proc.lin_key.weight", "model.decoder.0.proc.lin_key.weight"},
           {"model.encoder.emb_edges.model.2.weight", "model.encoder.0.emb_edges.mlp.2.weight"},
           {"model.processor.proc.0.emb_edges.model.0.bias",
            "model.processor.proc.0.emb_edges.mlp.0.bias"}}) {
    INFO(before);
    REQUIRE(only(before) == now);
  }
}

TEST_CASE("chunks of a processor are one list of blocks") {
  const std::string mlp = ".mlp.2.weight", projection = ".attention.projection.weight";
  std::vector<std::pair<std::string, size_t>> before;
  std::vector<std::string> now;
  int number = 0;
  for (const char* block : {"0.blocks.0", "0.blocks.1", "1.blocks.0", "1.blocks.1"}) {
    for (const std::string& layer : {mlp, projection})
      before.emplace_back(concat("model.processor.proc.", block, layer), 2);
    now.push_back(concat("model.processor.proc.", number, ".mlp", mlp));
    now.push_back(concat("model.processor.proc.", number++, projection));
  }
  REQUIRE(present(before) == now);
}

TEST_CASE("norms within layers have names of their own, and stand there once") {
  REQUIRE(present({{"model.encoder.emb_edges.model.4.weight", 2},
                   {"model.encoder.emb_edges.model.5.weight", 1},
                   {"model.encoder.emb_edges.model.5.bias", 1}}) ==
          std::vector<std::string>{"model.encoder.0.emb_edges.mlp.4.weight",
                                   "model.encoder.0.emb_edges.layer_norm.weight",
                                   "model.encoder.0.emb_edges.layer_norm.bias"});
  const std::string proc = "model.encoder.proc.", now = "model.encoder.0.proc.";
  REQUIRE(present({{proc + "lin_edge.weight", 2},
                   {proc + "layer_norm_mlp.weight", 1},
                   {proc + "node_dst_mlp.0.weight", 1},
                   {proc + "node_dst_mlp.1.weight", 2},
                   {proc + "node_dst_mlp.3.bias", 1}}) ==
          std::vector<std::string>{now + "lin_edge.weight", now + "layer_norm_mlp_dst.weight",
                                   now + "node_dst_mlp.mlp.0.weight",
                                   now + "node_dst_mlp.mlp.2.bias"});
  REQUIRE(only(proc + "node_dst_mlp.2.weight") == now + "node_dst_mlp.mlp.2.weight");
}

TEST_CASE("queries, keys and values of one layer are three") {
  NamedTensors model("file");
  const std::string block = "model.processor.proc.0.blocks.0.attention.";
  model.add(block + "lin_qkv.weight", tensor({6, 1}));
  const NamedTensors now = KeyHistory().present(model, graph_of(kIndex));
  const std::string attention = "model.processor.proc.0.attention.";
  REQUIRE(now.doubles(attention + "lin_q.weight") == std::vector<double>{0, 1});
  REQUIRE(now.doubles(attention + "lin_k.weight") == std::vector<double>{2, 3});
  REQUIRE(now.doubles(attention + "lin_v.weight") == std::vector<double>{4, 5});
  REQUIRE(now.at(attention + "lin_v.weight").shape == std::vector<int64_t>{2, 1});
}

TEST_CASE("learnt features of edges follow the order of the targets, equal ones as they were") {
  NamedTensors model("file");
  model.add("model.encoder.trainable.trainable", tensor({6, 1}));
  KeyHistory history;
  const NamedTensors now = history.present(model, graph_of(kIndex));
  REQUIRE(history.was_earlier());
  REQUIRE(now.doubles("model.encoder_graph_provider.data.trainable.trainable") ==
          std::vector<double>{4, 5, 2, 3, 0, 1});
  REQUIRE(now.integers("model.encoder_graph_provider.data.trainable_layout_version") ==
          std::vector<int64_t>{1});
  model.add("model.encoder.trainable.trainable", tensor({3, 2}));
  REQUIRE_THROWS_WITH(KeyHistory().present(model, graph_of(kIndex)),
                      ContainsSubstring("belongs to 3 edges"));
}

TEST_CASE("names of the present stay") {
  size_t count = 0;
  for (const auto& file : fs::directory_iterator(test::fixture("state_dicts"))) {
    INFO(file.path());
    std::istringstream lines(read_file(file.path()));
    std::string line;
    std::getline(lines, line);
    NamedTensors model("file");
    while (std::getline(lines, line)) {
      const bool is_vector = line.find(',') == std::string::npos;
      model.add(line.substr(0, line.find(' ')),
                tensor(is_vector ? std::vector<int64_t>{6} : std::vector<int64_t>{6, 1}));
    }
    KeyHistory history;
    REQUIRE(history.present(model, graph_of(kIndex)).names() == model.names());
    REQUIRE_FALSE(history.was_earlier());
    count += model.names().size();
  }
  REQUIRE(count > 500);
}
