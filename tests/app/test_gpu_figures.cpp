// SPDX-License-Identifier: Apache-2.0
// What GPUs do, from the driver's library to metrics.jsonl, log, watch and report; a library of the
// tests stands in for that of the driver.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

constexpr const char* kMore =
    "--set train.max_steps=10 --set log.every_steps=5 --set log.csv=true --set "
    "checkpoint.at_end=false ";

test::CommandResult train(const fs::path& run, const std::string& more) {
  return test::run_command(concat("LD_LIBRARY_PATH='", AIFS_FAKE_NVML_FOLDER,
                                  "':\"$LD_LIBRARY_PATH\" ",
                                  test::train_command(run, kMore + more)));
}

test::CommandResult program(const std::string& arguments) {
  return test::run_command(
      concat("LC_ALL=C '", test::program("aifs-train").string(), "' ", arguments));
}

std::vector<nlohmann::json> lines_with_gpus(const fs::path& run) {
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);)
    if (auto json = nlohmann::json::parse(line); json.contains("gpus")) found.push_back(json);
  return found;
}

}  // namespace

TEST_CASE("GPUs of the host are in metrics, log, watch and report", "[gpu_figures]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const auto result = train(run, "--set log.gpus=host");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto lines = lines_with_gpus(run);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["step"] == 5);
  CHECK(lines[0]["gpus"][1]["memory_gib"] == 60.0);
  CHECK_THAT(result.err, ContainsSubstring("GPU 0000:2b:00.0 is slowed down by heat") &&
                             ContainsSubstring("Xid 79") && ContainsSubstring("uncorrected"));
  const auto watched = program(concat("watch --once '", run.string(), "' --width 200"));
  INFO(watched.out);
  CHECK_THAT(watched.out, ContainsSubstring("GPUs        2: 70 % in use, 60.0 of 141.0 GiB, 640 W, "
                                            "91 C; slowed down by heat, power cap"));
  const fs::path page = folder.path() / "page.html";
  REQUIRE(program(concat("report '", run.string(), "' --out '", page.string(), "'")).exit_code ==
          0);
  CHECK_THAT(read_file(page), ContainsSubstring("\"gpu_memory_gib\":{\"step\":[5.0,10.0],"
                                                "\"mean\":[60.0,60.0]}"));
}

TEST_CASE("a run on a CPU looks at no GPU unless it is to", "[gpu_figures]") {
  const test::TemporaryFolder folder;
  for (const char* more : {"", "--set log.gpus=none"}) {
    const fs::path run = folder.path() / concat("r", std::string(more).size());
    const auto result = train(run, more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(lines_with_gpus(run).empty());
    CHECK_THAT(result.err, !ContainsSubstring("GPU 0000"));
  }
}
