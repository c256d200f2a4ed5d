// SPDX-License-Identifier: Apache-2.0
// aifs-train --dry-run: what it prints and writes, and its figures against those of real runs.
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;
using test::run_train;

namespace {

using Json = nlohmann::json;

// A training of so many steps without validation, on the CPU.
std::string bare(int64_t steps) {
  return concat(
      " --set train.validation.at_end=false --set "
      "train.validation.every_epochs=0 --set checkpoint.every_steps=0 --set profile.parts=true "
      "--set log.progress_bar=false --set train.max_steps=",
      steps);
}

Json plan_of(const test::TemporaryFolder& folder, const std::string& more) {
  const std::string file = (folder.path() / "plan.json").string();
  const auto result =
      run_train(folder.path() / "run", concat("--dry-run --plan-json '", file, "' ", more));
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(read_file(file));
}

// Calls and bytes by operation, of the whole run.
using Counts = std::map<std::string, std::pair<double, double>>;
[[maybe_unused]] Counts counted(const test::TemporaryFolder& folder, int ranks, int64_t steps,
                                const std::string& more) {
  const fs::path run = folder.path() / concat("run-", ranks, "-", steps);
  const auto result =
      run_command(test::mpirun(ranks) + test::train_command(run, bare(steps) + more));
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  const std::string log = read_file(run / "train.log");
  const std::regex pattern("([a-z-]+) +([0-9]+) calls +([0-9]+) bytes");
  Counts counts;
  for (auto i = std::sregex_iterator(log.begin(), log.end(), pattern); i != std::sregex_iterator();
       ++i)
    counts[(*i)[1]] = {std::stod((*i)[2]), std::stod((*i)[3])};
  return counts;
}

}  // namespace

TEST_CASE("a dry run says what a step needs and starts nothing", "[app][plan]") {
  const test::TemporaryFolder folder;
  const auto result = run_train(folder.path() / "run",
                                "--dry-run --ranks 8 --layout model=2 --layout sharding=optimizer");
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* text : {"8 ranks: model 2 x tensor 1 x pipeline 1 x data 4", "optimiser states",
                           "activations of processor", "processor sources", "gradients", "TFLOP",
                           "reduce-scatter", "samples/s"})
    REQUIRE_THAT(result.out, ContainsSubstring(text));
  // If gradients are reduced whole, every way of doing it is shown.
  const auto replicas = run_train(folder.path() / "run", "--dry-run --ranks 32");
  REQUIRE_THAT(replicas.out, ContainsSubstring("halving-doubling"));
  REQUIRE(!fs::exists(folder.path() / "run"));
}

TEST_CASE("scaling is tabulated and plotted up to thousands of ranks", "[app][plan]") {
  const test::TemporaryFolder folder;
  const std::string svg = (folder.path() / "scaling.svg").string();
  const Json plan = plan_of(folder, concat("--scaling 4096 --plan-svg '", svg, "'"));
  const auto& weak = plan["weak_scaling"];
  REQUIRE(weak.size() == 13);
  REQUIRE(weak.back()["ranks"] == 4096);
  REQUIRE(weak.front()["efficiency"] == 1.0);
  REQUIRE(weak.back()["efficiency"].get<double>() < 1.0);
  REQUIRE(plan["strong_scaling"].back()["ranks"] == 128);  // the mesh has 162 nodes
  REQUIRE_THAT(read_file(svg), ContainsSubstring("weak scaling"));
  REQUIRE_THAT(read_file(svg), ContainsSubstring("</svg>"));
}

TEST_CASE("a plan needs no dataset if it is told the variables", "[app][plan]") {
  const test::TemporaryFolder folder;
  const std::string no_data =
      "--set data.kind=anemoi --set data.dataset=/nowhere.zarr --set data.forcing=[] "
      "--set data.diagnostic=[] ";
  const Json plan = plan_of(folder, no_data + "--variables 88,13,1");
  const Json other = plan_of(folder, no_data + "--variables 8,3,1");
  REQUIRE(plan["parameters"].get<int64_t>() > other["parameters"].get<int64_t>());
  const auto missing = run_train(folder.path() / "run", "--dry-run " + no_data);
  REQUIRE(missing.exit_code == 3);
  REQUIRE_THAT(missing.err, ContainsSubstring("--variables"));
  REQUIRE(run_train(folder.path() / "run", "--dry-run --variables 88,13").exit_code == 2);
}

TEST_CASE("mistakes of a plan are said", "[app][plan]") {
  const test::TemporaryFolder folder;
  const auto error_of = [&](const std::string& more) {
    const auto result = run_train(folder.path() / "run", "--dry-run " + more);
    REQUIRE(result.exit_code == 2);
    return result.err;
  };
  REQUIRE_THAT(error_of("--ranks 6 --layout model=4"), ContainsSubstring("--ranks"));
  REQUIRE_THAT(error_of("--layout modle=4"), ContainsSubstring("model"));
  REQUIRE_THAT(error_of("--layout model=200"), ContainsSubstring("parallel.model"));
  REQUIRE_THAT(error_of("--plan-svg x.svg"), ContainsSubstring("--scaling"));
  REQUIRE(run_train(folder.path() / "run", "--ranks 6").exit_code == 2);  // without --dry-run
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("real runs send what their plans say", "[app][plan]") {
  const test::TemporaryFolder folder;
  for (const std::string more :
       {"",
        " --set model.encoder.kind=graph_transformer --set model.processor.kind="
        "graph_transformer --set model.decoder.kind=graph_transformer --set "
        "model.encoder.heads=2 --set model.processor.heads=2 --set model.decoder.heads=2"}) {
    for (const auto& [ranks, layout] :
         {std::pair{2, " --set parallel.model=2"}, {3, ""}, {2, " --set parallel.pipeline=2"}}) {
      INFO(ranks << " ranks" << layout << more);
      const Json plan = plan_of(folder, concat("--ranks ", ranks, layout, more));
      std::map<std::string, std::pair<double, double>> planned;
      for (const Json& transfer : plan["communication"]) {
        auto& sum = planned[transfer["operation"].get<std::string>()];
        sum.first += transfer["calls"].get<double>();
        sum.second += transfer["bytes"].get<double>();
      }
      // The difference of two lengths leaves out what runs do once.
      const std::string what = layout + more;
      const Counts few = counted(folder, ranks, 2, what), many = counted(folder, ranks, 5, what);
      fs::remove_all(folder.path() / concat("run-", ranks, "-2"));
      fs::remove_all(folder.path() / concat("run-", ranks, "-5"));
      REQUIRE(!planned.empty());
      for (const auto& [operation, sum] : planned) {
        INFO(operation);
        const auto per_step = [&](auto member) {
          return (many.at(operation).*member - few.at(operation).*member) / 3.0;
        };
        if (operation != "send")  // stages send sizes along
          CHECK(per_step(&std::pair<double, double>::first) == Approx(sum.first));
        CHECK(per_step(&std::pair<double, double>::second) == Approx(sum.second).epsilon(0.05));
      }
    }
  }
}
#endif
