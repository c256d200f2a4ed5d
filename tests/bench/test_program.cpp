// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/wave_store.h"

using namespace aifs;
using test::run_command;

TEST_CASE("the program writes what it measured", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string program = concat("'", test::program("aifs-bench").string(), "' step ");
  const fs::path file = folder.path() / "results.json";
  const fs::path cases = test::source_folder() / "bench/cases";
  const std::string command = concat(
      program, "--device cpu --threads 1 --steps 2 --warm-up 1 --graph-cache '",
      folder.path().string(), "' --config '", (cases / "gnn-512-n320-tri5-bf16.json").string(),
      "' --config '", (cases / "gnn-512-o96-tri5-bf16.json").string(),
      "' --set graph.grid=o8 --set graph.hidden.refinement=1 --set model.channels=8 "
      "--set model.layers=2 --json '",
      file.string(), "'");
  const auto result = run_command(command);
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
  REQUIRE(json[0]["case"] == "gnn-512-n320-tri5-bf16");
  REQUIRE(fs::exists(folder.path() / "o8-tri1.nc"));
  REQUIRE(run_command(program + "--config /nowhere.json --device cpu").exit_code == 2);
  const auto refused = run_command(command + " --set model.chanels=8");
  REQUIRE(refused.exit_code == 2);
  REQUIRE(refused.err.find("model.chanels") != std::string::npos);
}

TEST_CASE("kernels and reading are measured by the same program", "[bench]") {
  const test::TemporaryFolder folder;
  const std::string program = concat("'", test::program("aifs-bench").string(), "' ");
  const fs::path file = folder.path() / "results.json";
  const auto measure = [&](const std::string& arguments) {
    const auto result =
        run_command(concat(program, arguments, " --threads 1 --json '", file.string(), "'"));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    const auto json = nlohmann::json::parse(read_file(file));
    for (const char* key : {"card", "commit", "command", "versions", "results"})
      REQUIRE(json.contains(key));
    return json;
  };
  const std::string kernels =
      "kernels --device cpu --graph o8-tri1 --channels 8 --repetitions 2 --case ^norm-8";
  REQUIRE(measure(kernels)["limits"]["copy_gb_s"].get<double>() > 0.0);
  // No kernel is that fast.
  auto earlier = nlohmann::json::parse(read_file(file));
  for (auto& result : earlier["results"])
    result["us"] = 1e-3;
  const fs::path before = folder.path() / "before.json";
  write_file_atomic(before, earlier.dump());
  REQUIRE(run_command(concat(program, kernels, " --compare '", before.string(), "'")).exit_code ==
          4);
  write_file_atomic(before, "[{");
  const auto broken = run_command(concat(program, kernels, " --compare '", before.string(), "'"));
  REQUIRE(broken.exit_code == 2);
  REQUIRE(broken.err.find(before.string()) != std::string::npos);
  REQUIRE(run_command(program + "kernels --device cpu --case nonsense").exit_code == 2);
  const std::string demo = (test::source_folder() / "configs/demo.json").string();
  REQUIRE(measure(concat("data --device cpu --batches 3 --config '", demo,
                         "'"))["results"][0]["threads"] == 2);
  REQUIRE(run_command(program + "data --config /nowhere.json").exit_code == 2);
}

TEST_CASE("decoding is timed step by step, and compared with the reading threads", "[bench]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "waves.zarr", file = folder.path() / "results.json";
  test::write_wave_store({}, store);
  const std::string demo = (test::source_folder() / "configs/demo.json").string();
  const std::string command = concat("'", test::program("aifs-bench").string(),
                                     "' decode --device cpu --batches 2 --config '", demo,
                                     "' --json '", file.string(), "' ");
  const auto result = run_command(command + test::wave_options(store));
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  const auto results = nlohmann::json::parse(read_file(file))["results"];
  REQUIRE(results.size() == 1 + 2 * 3);
  REQUIRE(results[0]["identical"] == true);
  for (const auto& entry : results) {
    if (!entry.contains("read_ms")) continue;
    for (const char* key : {"parse_ms", "copy_ms", "lz4_ms", "fields_ms", "encoded_mib"})
      REQUIRE(entry[key].get<double>() >= 0.0);
  }
  REQUIRE(results[3]["case"] == "pipeline");
  REQUIRE(results[3]["samples_s"].get<double>() > 0.0);
  // A folder that is no store cannot be decoded.
  const auto refused = run_command(command);
  REQUIRE(refused.exit_code == 2);
  REQUIRE(refused.err.find("data.dataset") != std::string::npos);
}
