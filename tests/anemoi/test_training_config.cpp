// SPDX-License-Identifier: Apache-2.0
// Whole configurations of Anemoi's, as releases of 2025 and 2026 write them, become what is kept in
// tests/anemoi/expected (made by `aifs-train import-config FILE`, and looked through).
#include <cstdlib>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/anemoi/configs_folder.h"
#include "tests/support/catch.h"

using namespace aifs;
using anemoi::Json;
using anemoi::Verdict;
using test::anemoi_config;
using test::imported;

namespace {

std::vector<std::string> refused(const anemoi::Imported& result) {
  std::vector<std::string> paths;
  for (const anemoi::Remark& remark : result.remarks)
    if (remark.verdict == Verdict::kNotHonoured) paths.push_back(remark.path);
  return paths;
}

void require_expected(const std::string& file, const std::vector<std::string>& not_honoured) {
  const fs::path path(file);
  if (path.extension() != ".json" && !anemoi::reads_yaml()) return;
  const anemoi::Imported result =
      anemoi::import_training_config(anemoi_config(file), path.stem().string());
  const fs::path kept =
      test::source_folder() / "tests/anemoi/expected" / (path.stem().string() + ".json");
  INFO(file << "\n" << result.config().dump(2) << "\n" << remarks_text(result.remarks));
  REQUIRE(result.config().dump(2) + "\n" == read_file(kept));
  REQUIRE(refused(result) == not_honoured);
}

}  // namespace

TEST_CASE("the GNN at O96 is honoured in full, with and without references", "[anemoi]") {
  require_expected("o96_gnn.yaml", {});
}

TEST_CASE("a graph transformer on growing forecasts is honoured in full", "[anemoi]") {
  require_expected("n320_graph_transformer.yaml", {});
}

TEST_CASE("an ensemble on a reduced Gaussian mesh is honoured in full", "[anemoi]") {
  require_expected("ensemble_crps.json", {});
}

TEST_CASE("limited areas and stretched grids are honoured in full", "[anemoi]") {
  require_expected("lam.yaml", {});
  require_expected("stretched.yaml", {});
}

TEST_CASE("the keys of 2025 mean the same", "[anemoi]") {
  require_expected("o96_gnn_2025.yaml", {});
}

TEST_CASE("every key is read, refused or said to have no effect", "[anemoi]") {
  Json tree = test::json_config();
  tree["training"]["unheard_of"] = {{"deep", 1}};
  tree["model"]["processor"]["surprise"] = true;
  tree["dataloader"]["batch_size"]["tests"] = 3;
  tree["my_own"] = "x";
  const anemoi::Imported result = imported(tree);
  for (const char* path : {"training.unheard_of", "model.processor.surprise",
                           "dataloader.batch_size.tests", "my_own"}) {
    INFO(path);
    REQUIRE(test::is_refused(result, path));
  }
  REQUIRE(result.num_not_honoured() == 4);
}

TEST_CASE("what is no whole configuration is refused", "[anemoi]") {
  Json tree = test::json_config();
  tree.erase("model");
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("'model': is missing"));
  tree = test::json_config();
  tree["defaults"] = {"data: zarr"};
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("to be put together"));
  tree = test::json_config();
  tree["task"]["timestep"] = "${data.nothing}";
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("'task.timestep'"));
  tree["task"]["timestep"] = "???";
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("'task.timestep'"));
  tree["task"]["timestep"] = "6h";
  tree["model"]["num_channels"] = "many";
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("'model.num_channels'"));
}

TEST_CASE("names and variables of the environment that are no texts are refused", "[anemoi]") {
  REQUIRE_THROWS_WITH(anemoi::import_training_config(test::json_config(), "run-\xff"),
                      ContainsSubstring("not a text in UTF-8"));
  ::setenv("AIFS_TEST_NOT_UTF8", "era5-\xff.zarr", 1);
  Json tree = test::json_config();
  tree["dataloader"]["training"]["datasets"]["data"]["dataset_config"] =
      "${oc.env:AIFS_TEST_NOT_UTF8}";
  REQUIRE_THROWS_WITH(imported(tree),
                      ContainsSubstring("AIFS_TEST_NOT_UTF8 is not a text in UTF-8"));
  REQUIRE_THROWS_AS(imported(tree), ConfigError);
}

TEST_CASE("remarks are lists for people and for programs", "[anemoi]") {
  Json tree = test::json_config();
  tree["training"]["unheard_of"] = 1;
  const anemoi::Imported result = imported(tree);
  const std::string text = remarks_text(result.remarks);
  REQUIRE(text.starts_with("Not honoured"));
  REQUIRE(text.find("Without effect here") != std::string::npos);
  const Json json = remarks_json(result.remarks);
  REQUIRE(json.size() == result.remarks.size());
  for (const Json& remark : json) {
    REQUIRE(remark["path"].is_string());
    REQUIRE(remark.contains("value"));
  }
}
