// SPDX-License-Identifier: Apache-2.0
// The configurations of ECMWF's AIFS: as large as published, planned without data, and trained
// small on a synthetic store that has their variables.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/join.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;
using test::run_train;

namespace {

using Json = nlohmann::json;

std::string config_file(const std::string& name) {
  return (test::source_folder() / "configs" / (name + ".json")).string();
}

test::CommandResult require_success(const test::CommandResult& result) {
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

Json effective(const std::string& name) {
  const auto result =
      require_success(run_command(concat("'", test::program("aifs-train").string(), "' --config '",
                                         config_file(name), "' --print-config")));
  return Json::parse(result.out);
}

// Weights of AIFS with so many inputs and outputs, from the shapes in its published files: widths
// of 1024 and 4096, 12 attributes of a node, 11 of an edge, 748 348 and 1 626 240 edges.
int64_t num_weights(int64_t inputs, int64_t outputs) {
  constexpr int64_t kC = 1024, kHidden = 4096, kNodes = 542080 + 40320, kEdges = 748348 + 1626240;
  const int64_t source = 2 * inputs + 12;
  const int64_t mlp = 2 * kC * kHidden + kHidden + kC;
  const int64_t block = 5 * (kC * kC + kC) + 11 * kC + kC + 3 * 2 * kC + mlp;
  const int64_t encoder = block + 12 * kC + kC + source * kC + kC;
  const int64_t decoder = block + source * kC + kC + 2 * kC + outputs * kC + outputs;
  const int64_t layer = 2 * 2 * kC + 4 * kC * kC + kC + mlp;
  return 8 * (kNodes + kEdges) + encoder + decoder + 16 * layer;
}

// Overrides that make a configuration a matter of seconds, on a store of its variables.
class SmallAifs {
 public:
  explicit SmallAifs(const std::string& name) : name_(name) {
    std::vector<std::string> names = effective(name)["data"]["dataset"]["select"];
    require_success(run_command(concat("'", test::program("aifs-train").string(), "' data synth '",
                                       store().string(),
                                       "' --grid o8 --num-dates 40 --start 2022-12-27 --values "
                                       "waves --threads 1 --variables ",
                                       join(names, " "))));
  }
  fs::path run(const std::string& folder) const { return folder_.path() / folder; }
  fs::path store() const { return folder_.path() / "store.zarr"; }
  test::CommandResult train(const std::string& folder, const std::string& more = "",
                            const std::string& config = "") const {
    std::string options;
    for (const std::string& option : {concat("data.dataset.dataset='", store().string(), "'"),
                                      std::string("run.device=cpu"),
                                      std::string("data.training.start=2022-12-27"),
                                      std::string("data.training.end=2022"),
                                      std::string("data.validation.start=2023"),
                                      std::string("data.validation.end=2023"),
                                      std::string("graph.grid=o8"),
                                      std::string("graph.file="),
                                      std::string("graph.hidden.grid=o6"),
                                      std::string("model.channels=16"),
                                      std::string("model.layers=2"),
                                      std::string("model.encoder.heads=4"),
                                      std::string("model.processor.heads=4"),
                                      std::string("model.decoder.heads=4"),
                                      std::string("model.processor.window=16"),
                                      std::string("train.precision=fp32"),
                                      std::string("train.max_steps=2"),
                                      std::string("train.validation.max_dates=2"),
                                      std::string("optimizer.schedule.warmup_steps=1"),
                                      std::string("data.threads=1")})
      options += concat("--set ", option, " ");
    return run_train(run(folder), options + more, config_file(config.empty() ? name_ : config));
  }
  Json last_validation(const std::string& folder) const {
    const std::string lines = read_file(run(folder) / "validation.jsonl");
    return Json::parse(lines.substr(lines.rfind('\n', lines.size() - 2) + 1));
  }

 private:
  std::string name_;
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("AIFS has as many weights and variables as published, by a plan without data", "[aifs]") {
  struct Case {
    const char* config;
    int64_t inputs, outputs, forcings, diagnostics;
  };
  const test::TemporaryFolder folder;
  for (const Case& c :
       {Case{"aifs-single", 103, 102, 13, 12}, Case{"aifs-single-rollout", 103, 102, 13, 12},
        Case{"aifs-single-v2", 106, 120, 14, 28}, Case{"aifs-single-v2-rollout", 106, 120, 14, 28},
        Case{"aifs-ens", 121, 120, 14, 13}}) {
    INFO(c.config);
    const Json config = effective(c.config);
    const auto count = [&](const char* role) {
      return static_cast<int64_t>(config["data"][role].size());
    };
    const auto all = static_cast<int64_t>(config["data"]["dataset"]["select"].size());
    REQUIRE(count("forcing") == c.forcings);
    REQUIRE(count("diagnostic") == c.diagnostics);
    REQUIRE(all - count("diagnostic") == c.inputs);
    REQUIRE(all - count("forcing") == c.outputs);
    const std::string plan = (folder.path() / "plan.json").string();
    const auto result = run_train(folder.path() / "run",
                                  concat("--dry-run --ranks 16 --set graph.file= --plan-json '",
                                         plan, "' --machine '", config_file("machines/h200"), "'"),
                                  config_file(c.config));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    REQUIRE_THAT(result.err, ContainsSubstring("data.dataset.select"));
    REQUIRE(result.out.find("MORE than") == std::string::npos);
    if (std::string(c.config) == "aifs-ens") continue;  // norms and noise have weights of their own
    // A few edges depend on how coordinates are rounded.
    const int64_t parameters = Json::parse(read_file(plan))["parameters"];
    REQUIRE(std::abs(parameters - num_weights(c.inputs, c.outputs)) <= 8 * 16);
  }
}

TEST_CASE("a small AIFS Single trains, and its rollout starts from the weights", "[aifs]") {
  for (const std::string config : {"aifs-single", "aifs-single-v2"}) {
    INFO(config);
    const SmallAifs aifs(config);
    require_success(aifs.train("first"));
    const double loss = aifs.last_validation("first")["loss"];
    REQUIRE((loss > 0.0 && loss < 100.0));
    // The forecasts grow with every step here.
    const auto rollout = require_success(
        aifs.train("rollout",
                   concat("--set init.from='", aifs.run("first").string(),
                          "' --set train.max_steps=3 --set train.rollout.step_increment=1 --set "
                          "train.rollout.maximum=3 --set "
                          "'train.validation.lead_times=[\"6h\",\"12h\"]'"),
                   config + "-rollout"));
    REQUIRE_THAT(rollout.err, ContainsSubstring("one more every optimiser step up to 3"));
    REQUIRE(aifs.last_validation("rollout")["lead_times"].contains("12h"));
  }
}

TEST_CASE("a small AIFS ENS trains, and noise makes a difference", "[aifs]") {
  const SmallAifs aifs("aifs-ens");
  const auto loss_with = [&](const std::string& folder, const std::string& noise) {
    require_success(aifs.train(
        folder, concat("--set model.residual.truncation_grid=o4 --set "
                       "model.residual.truncation_neighbours=4 --set model.memory_budget=0 --set "
                       "model.ensemble.noise_std=",
                       noise)));
    return aifs.last_validation(folder)["loss"].get<double>();
  };
  const double loss = loss_with("run", "1"), without_noise = loss_with("still", "0");
  REQUIRE((loss > 0.0 && loss < 100.0));
  REQUIRE(loss != without_noise);
}
