// SPDX-License-Identifier: Apache-2.0
#include "train/output/init_weights.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "train/optim/adapters.h"

using namespace aifs;
using namespace aifs::train;

namespace {

using Names = std::vector<std::string>;
using Places = std::vector<int64_t>;

constexpr int64_t kChannels = 2, kAttributes = 1;

// An encoder, a decoder and something else, of so many columns of inputs and rows of outputs.
struct Network {
  model::ParameterSet set{at::kFloat, 1};

  Network(int64_t inputs, int64_t outputs) {
    set.add("encoder.0.emb_nodes_src.weight", {kChannels, inputs + kAttributes},
            model::Init::uniform(1.0));
    set.add("processor.proc.0.weight", {kChannels, kChannels}, model::Init::uniform(1.0));
    set.add("decoder.0.emb_nodes_dst.weight", {kChannels, inputs + kAttributes},
            model::Init::uniform(1.0));
    // A linear before the last one, and a norm, know nothing of variables.
    set.add("decoder.0.node_data_extractor.0.weight", {kChannels}, model::Init::ones());
    set.add("decoder.0.node_data_extractor.1.weight", {outputs, kChannels},
            model::Init::uniform(1.0));
    set.add("decoder.0.node_data_extractor.1.bias", {outputs}, model::Init::uniform(1.0));
    set.add_buffer("node_attributes.latlons_data", at::ones({2, 4}));
  }
  at::Tensor value(const std::string& name) const { return set.at(name).tensor.detach(); }
};

CheckpointInfo written(const fs::path& folder, Network& network) {
  network.set.flatten(at::kCPU);
  network.set.flat_values().copy_(at::arange(network.set.flat_size(), at::kFloat));
  const AdamW optimizer(network.set, {});
  CheckpointMeta meta;
  meta.config_json = "{}";
  return inspect_checkpoint(
      write_checkpoint(folder, {}, gather_tensors(network.set, optimizer), meta));
}

InitOptionsOfWeights by_name(const VariableAxis& inputs, const VariableAxis& outputs) {
  return {.may_skip = {}, .by_name = VariableMatch{inputs, outputs}};
}

std::string text_of_error(const CheckpointInfo& info, Network& network,
                          const InitOptionsOfWeights& options) {
  try {
    init_parameters(info, network.set, options);
  } catch (const ConfigError& error) {
    return concat(error.what(), " ", error.hint());
  }
  return "none";
}

}  // namespace

TEST_CASE("columns are found by name, and times counted from the same end", "[init_weights]") {
  const Names before{"a", "b", "c"}, now{"c", "x", "a"};
  REQUIRE(VariableAxis{before, now, 2, 2}.places() == Places{2, -1, 0, 5, -1, 3});
  // The newest time is the one that both have; of outputs, the first.
  REQUIRE(VariableAxis{before, now, 1, 2}.places() == Places{-1, -1, -1, 2, -1, 0});
  REQUIRE(VariableAxis{before, now, 2, 1}.places() == Places{5, -1, 3});
  REQUIRE(VariableAxis{before, now, 1, 2, false}.places() == Places{2, -1, 0, -1, -1, -1});
  REQUIRE(VariableAxis{before, now, 2, 1, false}.places() == Places{2, -1, 0});
}

TEST_CASE("what variables share is taken by name, new inputs weigh 0, new outputs stay as drawn",
          "[init_weights]") {
  const test::TemporaryFolder folder;
  Network before(2 * 3, 2), now(2 * 4, 3);
  const CheckpointInfo info = written(folder.path(), before);
  now.set.flatten(at::kCPU);
  const at::Tensor drawn = now.value("decoder.0.node_data_extractor.1.weight").clone();
  const InitReport report = init_parameters(
      info, now.set,
      by_name({{"a", "b", "c"}, {"c", "x", "b", "a"}, 2, 2}, {{"a", "b"}, {"y", "b", "a"}}));
  for (const char* name : {"encoder.0.emb_nodes_src.weight", "decoder.0.emb_nodes_dst.weight"}) {
    const at::Tensor own = now.value(name), from = before.value(name);
    const at::Tensor zero = at::zeros({kChannels});
    const Places places{2, -1, 1, 0, 5, -1, 4, 3, 6};  // and the attribute
    for (size_t i = 0; i < places.size(); ++i) {
      const at::Tensor expected = places[i] < 0 ? zero : from.select(1, places[i]);
      REQUIRE(at::equal(own.select(1, static_cast<int64_t>(i)), expected));
    }
  }
  const at::Tensor rows = now.value("decoder.0.node_data_extractor.1.weight");
  const at::Tensor from = before.value("decoder.0.node_data_extractor.1.weight");
  REQUIRE(at::equal(rows[0], drawn[0]));
  REQUIRE(at::equal(rows[1], from[1]));
  REQUIRE(at::equal(rows[2], from[0]));
  REQUIRE(at::equal(now.value("decoder.0.node_data_extractor.1.bias")[2],
                    before.value("decoder.0.node_data_extractor.1.bias")[0]));
  REQUIRE(at::equal(now.value("processor.proc.0.weight"), before.value("processor.proc.0.weight")));
  REQUIRE(report.count(InitUse::kByVariable) == 4);
  REQUIRE(report.count(InitUse::kTaken) == 2);
  REQUIRE(report.count(InitUse::kOwn) == 1);
  REQUIRE_THAT(report.table(), ContainsSubstring("encoder") && ContainsSubstring("by variable"));
  bool named = false;
  for (const InitTensor& tensor : report.tensors)
    named = named || tensor.text == "inputs by name, new: x";
  REQUIRE(named);
}

TEST_CASE("variables in another order are taken by name though shapes are the same",
          "[init_weights]") {
  const test::TemporaryFolder folder;
  Network before(2, 2), now(2, 2);
  const CheckpointInfo info = written(folder.path(), before);
  now.set.flatten(at::kCPU);
  init_parameters(info, now.set, by_name({{"a", "b"}, {"b", "a"}}, {{"a", "b"}, {"b", "a"}}));
  REQUIRE(at::equal(now.value("encoder.0.emb_nodes_src.weight").select(1, 0),
                    before.value("encoder.0.emb_nodes_src.weight").select(1, 1)));
  REQUIRE(at::equal(now.value("decoder.0.node_data_extractor.1.bias").flip(0),
                    before.value("decoder.0.node_data_extractor.1.bias")));
}

TEST_CASE("what does not fit is named with the options that allow it", "[init_weights]") {
  const test::TemporaryFolder folder;
  Network before(3, 2), now(4, 2);
  const CheckpointInfo info = written(folder.path(), before);
  now.set.flatten(at::kCPU);
  const std::string error = text_of_error(info, now, {});
  for (const char* text : {"encoder.0.emb_nodes_src.weight", "decoder.0.emb_nodes_dst.weight",
                           "init.may_skip", "init.variables_by_name", "2 tensors differ"})
    REQUIRE_THAT(error, ContainsSubstring(text));
  const at::Tensor drawn = now.value("encoder.0.emb_nodes_src.weight").clone();
  const InitReport report =
      init_parameters(info, now.set, {.may_skip = {"*.emb_nodes_*"}, .by_name = {}});
  REQUIRE(report.count(InitUse::kNew) == 2);
  REQUIRE(at::equal(now.value("encoder.0.emb_nodes_src.weight"), drawn));
  // Names do not help where something else differs, too.
  REQUIRE_THAT(text_of_error(info, now, by_name({{"a", "b"}, {"a", "b", "c", "d"}}, {})),
               ContainsSubstring("emb_nodes_src"));
}

TEST_CASE("adapters are new to a run, and not needed from the weights", "[init_weights]") {
  const test::TemporaryFolder folder;
  const LoraOptions lora{.rank = 1, .alpha = 1.0, .parameters = {"processor"}, .train_whole = {}};
  Network before(3, 2), now(3, 2), other(3, 2);
  add_adapters(before.set, lora);
  const CheckpointInfo info = written(folder.path(), before);
  now.set.flatten(at::kCPU);
  const InitReport report = init_parameters(info, now.set, {});
  REQUIRE(report.count(InitUse::kLeftOut) == 3);
  load_parameters(info, now.set);  // they are no fault of the file
  add_adapters(other.set, lora);
  other.set.flatten(at::kCPU);
  REQUIRE(init_parameters(info, other.set, {}).count(InitUse::kNew) == 3);
  REQUIRE(at::equal(now.value("processor.proc.0.weight"), before.value("processor.proc.0.weight")));
}
