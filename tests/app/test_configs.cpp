// SPDX-License-Identifier: Apache-2.0
// Every shipped configuration is sound, and the small ones run.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("every shipped configuration passes --check-config, but for its data", "[configs]") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_folder() / "configs")) {
    if (entry.path().extension() != ".json" || entry.path().stem() == "schema") continue;
    INFO(entry.path());
    const auto result =
        test::run_command(concat("'", test::program("aifs-train").string(), "' --config '",
                                 entry.path().string(), "' --check-config --no-data"));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    ++count;
  }
  REQUIRE(count >= 6);
}

TEST_CASE("the demo learns: every prognostic variable beats persistence", "[configs]") {
  const test::TemporaryFolder folder;
  const auto result = test::run_train(
      folder.path() / "r",
      "--set run.device=cpu --set train.max_steps=400 --set train.validation.every_steps=0 --set "
      "checkpoint.every_steps=0",
      (test::source_folder() / "configs/demo.json").string());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto figures = nlohmann::json::parse(read_file(folder.path() / "r" / "validation.jsonl"));
  for (const char* lead : {"6h", "24h"}) {
    const auto& scores = figures["lead_times"][lead];
    for (const auto& [variable, rmse] : scores["rmse"].items()) {
      INFO(lead << " " << variable);
      REQUIRE(rmse.get<double>() < scores["persistence_rmse"][variable].get<double>());
    }
  }
}
