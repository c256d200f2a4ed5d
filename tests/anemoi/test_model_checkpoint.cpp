// SPDX-License-Identifier: Apache-2.0
// Real checkpoints are read by tests/app/test_import_checkpoint.cpp.
#include "anemoi/model_checkpoint.h"

#include "core/check.h"
#include "tests/anemoi/torch_samples.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using anemoi::ModelCheckpoint;
using test::pickled;
using test::pickled_dict;
using test::pickled_tensor;

namespace {

std::map<std::string, std::string> storages() {
  std::map<std::string, std::string> all = test::graph_storages();
  all["0"] = test::bytes_of<float>({0, 1, 2, 3, 4, 5});
  all["step"] = test::bytes_of<float>({7});
  return all;
}

struct Read {
  explicit Read(const std::string& pickle, const std::map<std::string, std::string>& others = {}) {
    write_file_atomic(folder.path() / "file.ckpt", test::torch_bytes(pickle, storages(), others));
    checkpoint.emplace(folder.path() / "file.ckpt");
  }
  test::TemporaryFolder folder;
  std::optional<ModelCheckpoint> checkpoint;
};

void refuse(const std::string& pickle, const std::string& why) {
  INFO(why);
  REQUIRE_THROWS_AS(Read(pickle), DataError);
  REQUIRE_THROWS_WITH(Read(pickle), ContainsSubstring("file.ckpt'") && ContainsSubstring(why));
}

using Members = std::vector<std::pair<std::string, std::string>>;

// A module with these parameters, buffers and modules; the buffer "passing" is not saved.
std::string module(const Members& parameters, const Members& buffers, const Members& modules,
                   const Members& more = {}) {
  const std::string passing =
      test::pickled_class("__builtin__", "set") + "](" + pickled("passing") + "e\x85R";
  Members state{{"_parameters", pickled_dict(parameters)},
                {"_buffers", pickled_dict(buffers)},
                {"_non_persistent_buffers_set", passing},
                {"_modules", pickled_dict(modules)}};
  state.insert(state.end(), more.begin(), more.end());
  return test::pickled_object("a.module", "Class", pickled_dict(state));
}

// Lightning's dictionary.
std::string training(const Members& more) {
  Members all{{"state_dict", pickled_dict({{"model.model.b", pickled_tensor()},
                                           {"model.model._orig_mod.a", pickled_tensor()},
                                           {"loss.scaler", pickled_tensor()}})},
              {"hyper_parameters", pickled_dict({{"graph_data", test::pickled_graph()}})}};
  all.insert(all.end(), more.begin(), more.end());
  return pickled_dict(all);
}

std::string progress(int32_t begun, int32_t done, int32_t batches, bool is_last) {
  const std::string epochs = pickled_dict(
      {{"current", pickled_dict({{"ready", pickled(begun)}, {"processed", pickled(done)}})}});
  const std::string of_batches = pickled_dict(
      {{"current",
        pickled_dict({{"completed", pickled(batches - 1)}, {"processed", pickled(batches)}})},
       {"is_last_batch", is_last ? "\x88" : "\x89"}});
  return pickled_dict({{"fit_loop", pickled_dict({{"epoch_progress", epochs},
                                                  {"epoch_loop.batch_progress", of_batches}})}});
}

}  // namespace

TEST_CASE("the state dict of a pickled model has torch's order, without what is not saved") {
  const std::string inner = module({{"w", pickled_tensor()}, {"none", "N"}},
                                   {{"passing", pickled_tensor()}, {"kept", pickled_tensor()}}, {});
  const Read read(module({{"p", pickled_tensor()}}, {{"q", pickled_tensor()}},
                         {{"second", inner}, {"none", "N"}, {"first", inner}},
                         {{"graph_data", test::pickled_graph()}}));
  REQUIRE(read.checkpoint->model().names() ==
          std::vector<std::string>{"p", "q", "second.w", "second.kept", "first.w", "first.kept"});
  REQUIRE_FALSE(read.checkpoint->training().has_value());
  REQUIRE_FALSE(read.checkpoint->config().has_value());
}

TEST_CASE("the graph keeps its nodes, edges and their order") {
  const Read read(training({}));
  const NamedTensors& graph = read.checkpoint->graph();
  REQUIRE(graph.names() ==
          std::vector<std::string>{"nodes/data/latlon_rad", "edges/data_to_data/edge_index"});
  REQUIRE(graph.doubles("nodes/data/latlon_rad") == std::vector<double>{0.5, 1.5});
  REQUIRE(graph.integers("edges/data_to_data/edge_index") == std::vector<int64_t>{0, 0});
}

TEST_CASE("weights of training are those of the model, by their names before compilation") {
  const Read read(training({}));
  REQUIRE(read.checkpoint->model().names() == std::vector<std::string>{"model.b", "model.a"});
}

TEST_CASE("a training stands within an epoch, or at the beginning of the next one") {
  struct Case {
    std::string loops;
    int64_t epoch, batch;
  };
  for (const Case& c : {Case{progress(3, 2, 5, false), 2, 5}, Case{progress(3, 2, 5, true), 3, 0},
                        Case{progress(3, 3, 5, true), 3, 0}}) {
    const Read read(
        training({{"global_step", pickled(11)}, {"epoch", pickled(9)}, {"loops", c.loops}}));
    REQUIRE(read.checkpoint->training()->step == 11);
    REQUIRE(read.checkpoint->training()->epoch == c.epoch);
    REQUIRE(read.checkpoint->training()->batch_in_epoch == c.batch);
    REQUIRE(read.checkpoint->training()->optimizer.empty());
  }
}

TEST_CASE("moments come in the order of the parameters, steps as numbers or tensors") {
  const std::string step =
      pickled_tensor({.key = "step", .elements = 1, .shape = {}, .strides = {}});
  const std::string state =
      pickled_dict({{"step", step},
                    {"exp_avg", pickled_tensor()},
                    {"exp_avg_sq", pickled_tensor({.offset = 3, .shape = {3}, .strides = {1}})}});
  const std::string group = pickled_dict({{"params", "](" + pickled(1) + pickled(0) + "e"}});
  const std::string optimizer = pickled_dict(
      {{"state", "}" + pickled(0) + state + "s"}, {"param_groups", "]" + group + "a"}});
  const Read read(
      training({{"global_step", pickled(11)}, {"optimizer_states", "]" + optimizer + "a"}}));
  const anemoi::SavedTraining& saved = *read.checkpoint->training();
  REQUIRE(saved.optimizer == "adamw");
  REQUIRE(saved.optimizer_steps == 7);
  REQUIRE(saved.moments.size() == 2);
  REQUIRE(saved.moments[0].first.bytes.empty());  // never had a gradient
  REQUIRE(saved.moments[1].second.shape == std::vector<int64_t>{3});
}

TEST_CASE("configuration and seed stand in the metadata, or in the pickle of older releases") {
  const Read document(training({}),
                      {{"anemoi-metadata/anemoi.json", R"({"config": {"a": 1}, "base_seed": 5})"}});
  REQUIRE(document.checkpoint->config()->dump() == R"({"a":1})");
  REQUIRE(document.checkpoint->base_seed() == 5);
  const std::string node =
      test::pickled_object("omegaconf.nodes", "AnyNode", pickled_dict({{"_val", pickled(3)}}));
  const std::string config = test::pickled_object(
      "omegaconf.dictconfig", "DictConfig",
      pickled_dict({{"_content", pickled_dict({{"b", node}})}, {"_parent", "N"}}));
  const Read older(
      pickled_dict({{"state_dict", pickled_dict({{"model.a", pickled_tensor()}})},
                    {"hyper_parameters",
                     pickled_dict({{"graph_data", test::pickled_graph()}, {"config", config}})}}));
  REQUIRE(older.checkpoint->config()->dump() == R"({"b":3})");
}

TEST_CASE("what is no checkpoint of Anemoi is refused in words") {
  refuse("N", "holds None");
  refuse("}", "without state_dict");
  refuse(module({}, {}, {}), "without graph_data");
  refuse(module({}, {}, {}, {{"graph_data", test::pickled_graph()}}), "no weights");
  refuse(module({{"p", "K\x01"}}, {}, {}, {{"graph_data", test::pickled_graph()}}),
         "'p' as an integer");
  refuse(pickled_dict({{"state_dict", "}"}}), "holds no graph");
  refuse(module({}, {}, {{"m", "K\x01"}}, {{"graph_data", "}"}}), "'m.' as an integer");
  refuse(module({{"p", pickled_tensor()}}, {}, {}, {{"graph_data", "}"}}), "has 0 graphs");
  refuse(module({{"p", pickled_tensor()}}, {}, {}, {{"graph_data", "K\x01"}}),
         "an integer as its graph");
}

TEST_CASE("a module that contains itself, and a configuration without end, are refused") {
  // _modules of the module, which is in memory under 0, hold it again.
  const std::string itself =
      "ca.module\nClass\n)\x81q" + std::string(1, '\0') +
      pickled_dict({{"_modules", pickled_dict({{"m", std::string("h\0", 2)}})},
                    {"graph_data", test::pickled_graph()}}) +
      "b";
  refuse(itself, "within each other without end");
  // Each of 60 levels holds the one below twice: no walk through them ends.
  std::string doubled = module({}, {}, {}) + "q" + std::string(1, '\0');
  for (char level = 0; level < 60; ++level) {
    const std::string inner{'h', level}, outer{'q', static_cast<char>(level + 1)};
    const Members both{{"a", inner}, {"b", inner}};
    const Members graph{{"graph_data", test::pickled_graph()}};
    doubled += "0" + module({}, {}, both, graph) + outer;
  }
  refuse(doubled, "without end");
  // A dictionary of graphs that holds itself.
  const std::string own = "}q" + std::string(1, '\0') + pickled("g") + std::string("h\0s", 3);
  refuse(module({{"p", pickled_tensor()}}, {}, {}, {{"graph_data", own}}),
         "a dictionary as its graph");
  const std::string list = "]q" + std::string(1, '\0') + std::string("h\0", 2) + "a";
  refuse(pickled_dict({{"state_dict", pickled_dict({{"model.a", pickled_tensor()}})},
                       {"hyper_parameters",
                        pickled_dict({{"graph_data", test::pickled_graph()}, {"config", list}})}}),
         "larger or deeper");
}
