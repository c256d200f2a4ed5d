// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using test::run_command;

TEST_CASE("the program writes what it measured", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string program = concat("'", test::program("aifs-bench").string(), "' step ");
  const fs::path file = folder.path() / "results.json";
  const auto result = run_command(
      concat(program, "--device cpu --threads 1 --steps 2 --warm-up 1 --layers 2 --graph-cache '",
             folder.path().string(),
             "' --case gnn-8-o8-tri1-fp32 --case gnn-8-o8-tri1-bf16 --json '", file.string(), "'"));
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(read_file(file));
  REQUIRE(json.size() == 2);
  for (const auto& entry : json) {
    for (const char* key : {"case", "step_ms", "spread", "peak_gib", "card", "commit", "command"})
      REQUIRE(entry.contains(key));
    REQUIRE(entry["check"]["within"].get<bool>());
    REQUIRE(entry["card"] == "CPU");
  }
  REQUIRE(run_command(program + "--case nonsense --device cpu").exit_code != 0);
}
