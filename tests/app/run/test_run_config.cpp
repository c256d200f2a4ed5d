// SPDX-License-Identifier: Apache-2.0
#include "app/run/run_config.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::RunConfig;

namespace {

RunConfig tiny(const std::vector<std::string>& overrides = {}) {
  return app::load_config(test::tiny_config(), overrides);
}

std::string hash_with(const std::string& assignment) {
  RunConfig config = tiny({assignment});
  return app::config_hash(config);
}

std::vector<std::string> differing(const std::vector<std::string>& before,
                                   const std::vector<std::string>& after) {
  RunConfig a = tiny(before), b = tiny(after);
  return app::differing_keys(app::effective_json(a), b);
}

// The path of the ConfigError that these overrides give.
std::string fault(const std::vector<std::string>& overrides) {
  try {
    tiny(overrides);
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("the hash changes with what changes numbers, and with nothing else", "[run_config]") {
  const std::string hash = hash_with("run.dir=out");
  for (const char* same :
       {"run.dir=other", "run.log_level=debug", "run.mode=validate", "log.every_steps=7",
        "checkpoint.keep=9", "profile.parts=true", "data.threads=5", "data.prefetch_batches=3",
        "train.max_epochs=3", "train.max_minutes=4", "train.validation.max_dates=1",
        "optimizer.schedule.total_steps=40"}) {  // 40 is train.max_steps
    INFO(same);
    REQUIRE(hash_with(same) == hash);
  }
  for (const char* other :
       {"run.seed=8", "data.batch_size=3", "graph.grid=o9", "model.channels=9", "loss.kind=mae",
        "train.precision=fp64", "optimizer.schedule.lr=1e-4", "train.rollout.maximum=2",
        "train.accumulate_batches=2", "train.accumulation=anemoi", "data.training.end=2020-01-04",
        "train.max_steps=41"}) {  // moves the end of the cosine
    INFO(other);
    REQUIRE(hash_with(other) != hash);
  }
}

TEST_CASE("the length of a run does not matter where the schedule has its own end",
          "[run_config]") {
  RunConfig a = tiny({"optimizer.schedule.total_steps=50", "train.max_steps=20"});
  RunConfig b = tiny({"optimizer.schedule.total_steps=50", "train.max_steps=30"});
  REQUIRE(app::config_hash(a) == app::config_hash(b));
}

TEST_CASE("differences from an earlier configuration are named by path", "[run_config]") {
  REQUIRE(differing({}, {"run.dir=x", "log.every_steps=3"}).empty());
  REQUIRE(differing({}, {"model.channels=9", "optimizer.schedule.lr=1e-4"}) ==
          std::vector<std::string>{"model.channels", "optimizer.schedule.lr"});
  REQUIRE(differing({}, {"train.max_steps=50"}) ==
          std::vector<std::string>{"optimizer.schedule.total_steps"});
  RunConfig config = tiny();
  REQUIRE(app::differing_keys("no JSON", config).empty());
}

TEST_CASE("elements of lists that an earlier program wrote have the defaults of this one",
          "[run_config]") {
  const std::string bounding = R"(model.bounding=[{"kind": "relu", "variables": ["ke_850"]}])";
  RunConfig config = tiny({bounding});
  auto old = config::Json::parse(app::effective_json(config));
  REQUIRE(old["model"]["bounding"][0].erase("datasets") == 1);  // a key of later
  REQUIRE(app::differing_keys(old.dump(), config).empty());
  REQUIRE(app::network_differences(old.dump(), config).empty());
  old["model"]["bounding"][0]["variables"] = {"t_850"};
  REQUIRE(app::differing_keys(old.dump(), config) == std::vector<std::string>{"model.bounding"});
}

TEST_CASE("the effective configuration has every default and reads back as itself",
          "[run_config]") {
  const test::TemporaryFolder folder;
  RunConfig config = tiny({"model.channels=12"});
  const std::string text = app::effective_json(config);
  write_file_atomic(folder.path() / "c.json", text);
  RunConfig again = app::load_config((folder.path() / "c.json").string(), {});
  REQUIRE(app::effective_json(again) == text);
  REQUIRE(app::config_hash(again) == app::config_hash(config));
  REQUIRE(nlohmann::json::parse(text)["optimizer"]["beta2"] == 0.95);
}

TEST_CASE("what must hold between sections is checked before anything is opened", "[run_config]") {
  REQUIRE(fault({}) == "none");
  REQUIRE(fault({"graph.grid=dataset"}) == "graph.grid");
  REQUIRE(fault({"data.kind=anemoi"}) == "data.dataset.dataset");
  REQUIRE(fault({"loss.time_weights=[1,2]"}) == "loss.time_weights");
  REQUIRE(fault({"train.max_steps=0"}) == "train.max_steps");
  REQUIRE(fault({"train.accumulation=sum"}) == "train.accumulation");
  REQUIRE(fault({"train.max_steps=0", "train.max_epochs=1"}) == "optimizer.schedule.total_steps");
  REQUIRE(fault({"model.hierarchy.meshes=[\"fine\",\"coarse\"]"}) == "model.hierarchy.meshes");
  REQUIRE(fault({"train.max_steps=0", "train.max_epochs=1", "optimizer.schedule.kind=constant"}) ==
          "none");
  REQUIRE(fault({"data.analytic.frequency=1s", "data.analytic.end=2999"}) ==
          "data.analytic.frequency");
}

TEST_CASE("schema and reference know every section", "[run_config]") {
  const auto schema = nlohmann::json::parse(app::schema_json());
  for (const char* section : {"run", "data", "graph", "model", "loss", "train", "optimizer",
                              "parallel", "checkpoint", "log", "profile"}) {
    INFO(section);
    REQUIRE(schema["properties"].contains(section));
    REQUIRE_THAT(app::reference_markdown(), ContainsSubstring(concat("## `", section, "`")));
  }
  REQUIRE(schema["additionalProperties"] == false);
}
