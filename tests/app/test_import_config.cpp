// SPDX-License-Identifier: Apache-2.0
// import-config prints a configuration that the program takes, and says what it leaves out.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

fs::path anemoi_config(const std::string& name) {
  return test::source_folder() / "tests/anemoi/configs" / name;
}

test::CommandResult import_config(const fs::path& file, const std::string& more = "") {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' import-config '",
                                  file.string(), "' ", more));
}

test::CommandResult run_with(const fs::path& config, const std::string& more) {
  return test::run_command(concat("'", test::program("aifs-train").string(), "' --config '",
                                  config.string(), "' ", more));
}

bool lacks_yaml(const test::CommandResult& result) {
  return result.err.find("built without") != std::string::npos;
}

}  // namespace

TEST_CASE("what is printed is a sound configuration", "[import_config]") {
  const test::TemporaryFolder folder;
  for (const char* name :
       {"o96_gnn.yaml", "o96_gnn_2025.yaml", "n320_graph_transformer.yaml", "ensemble_crps.json"}) {
    const auto result = import_config(anemoi_config(name));
    INFO(name << "\n" << result.err);
    if (lacks_yaml(result)) continue;
    REQUIRE(result.exit_code == 0);
    const fs::path config = folder.path() / "run.json";
    write_file_atomic(config, result.out);
    const auto checked = run_with(config, "--check-config --no-data");
    INFO(checked.out << checked.err);
    REQUIRE(checked.exit_code == 0);
    const bool has_grid = Json::parse(result.out)["graph"]["hidden"].contains("grid");
    const std::string small = has_grid ? "--set graph.hidden.grid=o8"
                                       : "--set graph.hidden.refinement=3 --set "
                                         "'graph.processor.levels=[]'";
    const auto planned =
        run_with(config, concat("--dry-run --set graph.grid=o32 ", small,
                                " --set parallel.model=1 --variables 88,13,2 --ranks 4"));
    INFO(planned.out << planned.err);
    REQUIRE(planned.exit_code == 0);
  }
}

TEST_CASE("an imported configuration trains", "[import_config]") {
  const test::TemporaryFolder folder;
  Json tree = Json::parse(read_file(anemoi_config("ensemble_crps.json")));
  const Json waves = Json::parse(read_file(test::tiny_config()), nullptr, true, true)["data"];
  Json& data = tree["data"]["datasets"]["data"];
  data["forcing"] = waves["forcing"];
  data["diagnostic"] = waves["diagnostic"];
  data["processors"]["normalizer"]["config"] = waves["normalizer"];
  tree["graph"]["nodes"]["hidden"]["node_builder"] = {{"_target_", "anemoi.graphs.nodes.TriNodes"},
                                                      {"resolution", 2}};
  Json& model = tree["model"];
  model["num_channels"] = 8;
  model["processor"]["num_layers"] = 2;
  model["processor"]["window_size"] = 32;
  for (const char* part : {"encoder", "processor", "decoder"})
    model[part]["num_heads"] = 2;
  model["residual"] = {{"_target_", "anemoi.models.layers.residual.SkipConnection"}};
  model["bounding"] = Json::array();
  tree["training"]["precision"] = 32;
  tree["system"]["hardware"]["accelerator"] = "cpu";
  tree["training"]["training_loss"]["datasets"]["data"]["per_scale_loss"]["scalers"] = {
      "node_weights", "time_steps"};
  write_file_atomic(folder.path() / "anemoi.json", tree.dump());
  const auto result = import_config(folder.path() / "anemoi.json", "--strict");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  Json config = Json::parse(result.out);
  config["data"]["kind"] = "analytic";
  config["data"]["analytic"] = waves["analytic"];
  config["data"]["training"] = waves["training"];
  config["data"]["validation"] = waves["validation"];
  config["data"].erase("dataset");
  config["graph"]["grid"] = "o8";
  write_file_atomic(folder.path() / "run.json", config.dump());
  const auto trained =
      run_with(folder.path() / "run.json",
               concat("--set run.threads=1 --set train.max_steps=2 --set run.dir='",
                      (folder.path() / "r").string(), "'"));
  INFO(trained.out << trained.err);
  REQUIRE(trained.exit_code == 0);
}

TEST_CASE("what is not honoured is named, and an exit code for those who ask", "[import_config]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "hexagons.json", report = folder.path() / "report.json";
  Json tree = Json::parse(read_file(anemoi_config("ensemble_crps.json")));
  tree["graph"]["nodes"]["hidden"]["node_builder"] = {{"_target_", "anemoi.graphs.nodes.HexNodes"},
                                                      {"resolution", 2}};
  write_file_atomic(file, tree.dump());
  const auto plain = import_config(file);
  REQUIRE(plain.exit_code == 0);
  REQUIRE_THAT(plain.err, ContainsSubstring("graph.nodes.hidden.node_builder: hexagons"));
  const auto strict = import_config(file, concat("--strict --report '", report.string(), "'"));
  REQUIRE(strict.exit_code == 7);
  REQUIRE(strict.out == plain.out);
  REQUIRE(strict.err.empty());
  bool found = false;
  for (const Json& remark : Json::parse(read_file(report)))
    found = found || remark["verdict"] == "not_honoured";
  REQUIRE(found);
}

TEST_CASE("what would be refused is said of Anemoi's key", "[import_config]") {
  const test::TemporaryFolder folder;
  Json tree = Json::parse(read_file(anemoi_config("ensemble_crps.json")));
  tree["model"]["processor"]["num_heads"] = 7;
  write_file_atomic(folder.path() / "heads.json", tree.dump());
  auto result = import_config(folder.path() / "heads.json");
  REQUIRE(result.exit_code == 2);
  REQUIRE(result.out.empty());
  REQUIRE_THAT(result.err, ContainsSubstring("'model.processor.num_heads'"));
  write_file_atomic(folder.path() / "broken.json", "{\"data\": ");
  result = import_config(folder.path() / "broken.json");
  REQUIRE(result.exit_code == 2);
  REQUIRE_THAT(result.err, ContainsSubstring("is not JSON"));
  REQUIRE(import_config(folder.path() / "none.yaml").exit_code == 2);
}
