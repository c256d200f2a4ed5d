// SPDX-License-Identifier: Apache-2.0
// Models for Anemoi, and back: names, shapes and order are those of its state dicts, and nothing
// changes on the way.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"
#include "tests/support/full_reference.h"

using namespace aifs;
using test::run_train;

namespace {

constexpr const char* kFirst = "checkpoints/step-00000000/parameters.safetensors";

test::CommandResult exchange(const std::string& arguments) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' ", arguments));
}

std::string quoted(const fs::path& path) {
  return concat("'", path.string(), "'");
}

void require_success(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

// "name float32 [8, 11]" of every tensor, in order, as tests/app/oracle.py writes them.
std::string listing(const SafetensorsFile& file) {
  static const std::map<DType, const char*> types{
      {DType::kF32, "float32"}, {DType::kI64, "int64"}, {DType::kI32, "int32"}};
  std::string text;
  for (const std::string& name : file.names()) {
    const SafetensorsEntry& entry = file.at(name);
    std::string shape;
    for (const int64_t length : entry.shape)
      shape += concat(shape.empty() ? "" : ", ", length);
    text += concat(name, " ", types.at(entry.dtype), " [", shape, "]\n");
  }
  return text;
}

bool same_bits(const SafetensorsEntry& a, const SafetensorsEntry& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

SafetensorsItem item_of(const std::string& name, const SafetensorsEntry& entry) {
  return {name, entry.dtype, entry.shape, static_cast<const void*>(entry.bytes.data())};
}

bool is_of_graph(const std::string& tensor) {
  return tensor.starts_with("nodes/") || tensor.starts_with("edges/");
}

// The folder that a writer of Anemoi's weights and graph makes.
void write_exchange(const SafetensorsFile& golden, const fs::path& folder) {
  std::vector<SafetensorsItem> state, graph;
  for (const auto& [name, entry] : golden.entries()) {
    if (name.starts_with("state/")) state.push_back(item_of("model." + name.substr(6), entry));
    if (is_of_graph(name)) graph.push_back(item_of(name, entry));
  }
  make_directories(folder);
  write_safetensors(folder / "model.safetensors", state);
  write_safetensors(folder / "graph.safetensors", graph);
}

// A trained tiny model and its export.
struct Exported {
  explicit Exported(const std::string& overrides = "") {
    require_success(run_train(run, concat("--set train.max_steps=3 ", overrides)));
    require_success(exchange(concat("export --format anemoi ", quoted(run), " ", quoted(out))));
  }
  fs::path parameters() const { return run / "checkpoints/step-00000003/parameters.safetensors"; }

  test::TemporaryFolder folder;
  fs::path run = folder.path() / "run", out = folder.path() / "out",
           again = folder.path() / "again";
};

}  // namespace

TEST_CASE("exported names, types, shapes and order are those of Anemoi's model", "[exchange]") {
  int count = 0;
  for (const auto& file : fs::directory_iterator(test::fixture("state_dicts"))) {
    INFO(file.path());
    const std::string text = read_file(file.path());
    const size_t end = text.find('\n');
    const Exported model(text.substr(0, end));
    REQUIRE(listing(SafetensorsFile(model.out / "model.safetensors")) == text.substr(end + 1));
    ++count;
  }
  REQUIRE(count == 12);
}

TEST_CASE("there and back a model keeps its bits, and runs go on from it", "[exchange]") {
  const Exported model;
  require_success(exchange(concat("import ", quoted(model.out), " ", quoted(model.again))));
  REQUIRE(read_file(model.again / kFirst) == read_file(model.parameters()));
  const fs::path second = model.folder.path() / "second";
  require_success(exchange(concat("export ", quoted(model.again), " ", quoted(second))));
  for (const char* file : {"model.safetensors", "graph.safetensors"}) {
    INFO(file);
    REQUIRE(read_file(second / file) == read_file(model.out / file));
  }

  const std::string three = "--set train.max_steps=3";
  const auto resumed =
      run_train(model.again, concat("--resume ", three), (model.again / "config.json").string());
  require_success(resumed);
  REQUIRE_THAT(resumed.err, ContainsSubstring("resuming at step 0"));
  const fs::path fresh = model.folder.path() / "fresh";
  require_success(run_train(
      fresh, concat(three, " --set init.from=", quoted((model.again / kFirst).parent_path()))));
  const auto first_loss = [](const fs::path& run) {
    std::istringstream lines(read_file(run / "metrics.jsonl"));
    std::string line;
    std::getline(lines, line);
    return nlohmann::json::parse(line).at("loss").get<double>();
  };
  REQUIRE(first_loss(fresh) == first_loss(model.again));
}

TEST_CASE("the matrices of a truncated residual go along: means over neighbours", "[exchange]") {
  const Exported model(
      "--set model.residual.kind=truncated --set model.residual.truncation_grid=tri1");
  const SafetensorsFile file(model.out / "truncation.safetensors");
  for (const auto& [way, rows, columns] :
       {std::tuple("down", size_t{42}, int64_t{544}), std::tuple("up", size_t{544}, int64_t{42})}) {
    INFO(way);
    const auto row = file.integers(concat(way, "/row")),
               column = file.integers(concat(way, "/column"));
    const auto value = file.doubles(concat(way, "/value"));
    std::vector<double> sums(rows);
    for (size_t i = 0; i < value.size(); ++i)
      sums.at(static_cast<size_t>(row[i])) += value[i];
    REQUIRE(std::ranges::all_of(sums, [](double sum) { return std::abs(sum - 1.0) < 1e-6; }));
    REQUIRE(std::ranges::max(column) < columns);
  }
}

TEST_CASE("averaged weights are exported where the run averages", "[exchange]") {
  const Exported model("--set optimizer.average.kind=ema --set optimizer.average.decay=0.5");
  const SafetensorsFile out(model.out / "model.safetensors"), weights(model.parameters());
  const SafetensorsFile states(model.parameters().parent_path() / "optimizer.safetensors");
  const std::string name = "encoder.0.emb_nodes_src.mlp.0.weight";
  REQUIRE(same_bits(out.at("model." + name), states.at("average/" + name)));
  REQUIRE(!same_bits(out.at("model." + name), weights.at(name)));
}

TEST_CASE("what does not fit is refused by name", "[exchange]") {
  const Exported model;
  const auto import = [&](const std::string& more) {
    fs::remove_all(model.again);
    return exchange(concat("import ", quoted(model.out), " ", quoted(model.again), " ", more));
  };
  const auto full = exchange(concat("export ", quoted(model.run), " ", quoted(model.out)));
  REQUIRE(full.exit_code == 2);
  REQUIRE_THAT(full.err, ContainsSubstring("is there already"));
  const auto wider = import("--set model.channels=12");
  REQUIRE(wider.exit_code == 3);
  REQUIRE_THAT(wider.err, ContainsSubstring("'model.decoder.0.emb_edges.mlp.0.weight' has shape"));
  const auto other_method = import("--set data.normalizer.default=std");
  REQUIRE(other_method.exit_code == 2);
  REQUIRE_THAT(other_method.err, ContainsSubstring("data.normalizer") && ContainsSubstring("'u_"));
  const auto format = import("--format onnx");
  REQUIRE(format.exit_code == 2);
  fs::remove(model.out / "config.json");
  const auto no_config = import("");
  REQUIRE(no_config.exit_code == 2);
  REQUIRE_THAT(no_config.err, ContainsSubstring("--config FILE"));
  fs::remove(model.out / "graph.safetensors");
  const auto no_graph = import(concat("--config ", quoted(test::tiny_config())));
  REQUIRE(no_graph.exit_code == 3);
  REQUIRE_THAT(no_graph.err, ContainsSubstring("graph.safetensors"));
}

TEST_CASE("options that Anemoi checkpoints would lose are refused by name", "[exchange]") {
  const test::TemporaryFolder folder;
  const std::pair<const char*, const char*> options[] = {
      {"model.encoder.norm_eps", "0.001"},
      {"model.decoder.trainable", "3"},
      {"model.trainable_parameters.nodes", R"('{"hidden": 3}')"}};
  for (const auto& [key, value] : options) {
    const fs::path run = folder.path() / key, out = folder.path() / "out";
    require_success(run_train(run, concat("--set train.max_steps=1 --set ", key, "=", value)));
    const auto refused = exchange(concat("export ", quoted(run), " ", quoted(out)));
    INFO(refused.err);
    REQUIRE(refused.exit_code == 2);
    REQUIRE_THAT(refused.err, ContainsSubstring(concat("'", key, "'")));
    REQUIRE_FALSE(fs::exists(out));
  }
}

TEST_CASE("weights and graph of Anemoi's own training come through unchanged",
          "[exchange][full_reference]") {
  const fs::path shared = test::full_reference();
  const test::TemporaryFolder folder;
  require_success(test::run_command(
      concat("tar -xf ", quoted(shared / "datasets/speedy.tar"), " -C ", quoted(folder.path()))));
  ::setenv("AIFS_SPEEDY", (folder.path() / "speedy.zarr").c_str(), 1);
  for (const auto& [name, config] : std::map<std::string, std::string>{
           {"speedy_gnn", "configs/speedy.json"}, {"speedy_gt", "configs/speedy_gt.json"}}) {
    INFO(name);
    const fs::path in = folder.path() / name, run = in / "run", out = in / "out";
    const SafetensorsFile golden(shared / concat("golden/trained/", name, ".safetensors"));
    write_exchange(golden, in);
    require_success(exchange(concat("import --config ", quoted(test::source_folder() / config), " ",
                                    quoted(in), " ", quoted(run))));
    require_success(exchange(concat("export ", quoted(run), " ", quoted(out))));
    const SafetensorsFile state(out / "model.safetensors"), graph(out / "graph.safetensors");
    size_t compared = 0;
    for (const auto& [tensor, entry] : golden.entries()) {
      INFO(tensor);
      if (tensor.starts_with("state/")) {
        REQUIRE(same_bits(state.at("model." + tensor.substr(6)), entry));
      } else if (is_of_graph(tensor)) {
        REQUIRE(same_bits(graph.at(tensor), entry));
      } else {
        continue;
      }
      ++compared;
    }
    REQUIRE(compared > 100);
  }
}
