// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: output, exit codes, and one clear message for each mistake.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;
using test::run_train;

namespace {

std::string aifs_train() {
  return "'" + test::program("aifs-train").string() + "' ";
}

// One message, a hint or not, nothing that looks like a crash.
void require_clean_failure(const test::CommandResult& result, int exit_code,
                           const std::string& message) {
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  REQUIRE_THAT(result.err, ContainsSubstring(message));
  REQUIRE(result.err.find("terminate called") == std::string::npos);
  REQUIRE(result.err.find("c10::") == std::string::npos);
}

}  // namespace

TEST_CASE("help, version, schema and reference need no configuration", "[program]") {
  REQUIRE_THAT(run_command(aifs_train() + "--help").out, ContainsSubstring("Exit codes"));
  const auto version = run_command(aifs_train() + "--version");
  REQUIRE(version.exit_code == 0);
  for (const char* name : {"aifs-train", "LibTorch", "CUDA", "NCCL", "MPI", "netCDF", "c-blosc"}) {
    REQUIRE_THAT(version.out, ContainsSubstring(name));
  }
  const auto schema = nlohmann::json::parse(run_command(aifs_train() + "--print-schema").out);
  REQUIRE(schema["properties"]["train"]["properties"]["max_steps"]["type"] == "integer");
  REQUIRE_THAT(run_command(aifs_train() + "--print-reference").out,
               ContainsSubstring("## `optimizer.schedule`"));
}

TEST_CASE("wrong command lines exit with 2", "[program]") {
  REQUIRE(run_command(aifs_train()).exit_code == 2);
  REQUIRE(run_command(aifs_train() + "--nonsense").exit_code == 2);
  REQUIRE(run_command(aifs_train() + "--config /nowhere.json").exit_code == 2);
  REQUIRE(run_command(aifs_train() + "--config x --resume a --validate-only b").exit_code == 2);
}

TEST_CASE("the effective configuration reads back as itself", "[program]") {
  const test::TemporaryFolder folder;
  const auto first = run_train(folder.path() / "r", "--print-config --set model.channels=12");
  REQUIRE(first.exit_code == 0);
  const fs::path copy = folder.path() / "copy.json";
  write_file_atomic(copy, first.out);
  const auto second = run_train(folder.path() / "r", "--print-config", copy.string());
  REQUIRE(second.out == first.out);
  REQUIRE(nlohmann::json::parse(first.out)["model"]["channels"] == 12);
}

TEST_CASE("every section can be overridden from the command line", "[program]") {
  const test::TemporaryFolder folder;
  for (const char* assignment :
       {"run.seed=3", "data.batch_size=1", "graph.hidden.refinement=1", "model.layers=1",
        "loss.kind=mae", "train.max_steps=3", "optimizer.schedule.lr=1e-4", "parallel.model=1",
        "checkpoint.keep=1", "log.every_steps=1", "profile.parts=true"}) {
    INFO(assignment);
    REQUIRE(run_train(folder.path() / "r", concat("--check-config --set ", assignment)).exit_code ==
            0);
  }
}

TEST_CASE("mistakes in the configuration name their path and exit with 2", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const auto fails = [&](const std::string& assignment, const std::string& message) {
    INFO(assignment);
    require_clean_failure(run_train(run, "--set " + assignment), 2, message);
  };
  fails("model.chanels=8", "'model.chanels': no key 'chanels'");
  fails("model.channels=0", "'model.channels': got 0, allowed is integer from 1");
  fails("model.channels='\"many\"'", "'model.channels': got \"many\"");
  fails("data.forcing='[\"cos_latitud\"]'", "the dataset has no variable 'cos_latitud'");
  fails("graph.grid=o7x", "o7x");
  fails("graph.grid=dataset", "the analytic dataset has no grid");
  fails("model.bounding.0.variables='[\"ke_85\"]'", "nearest: 'ke_850'");
  fails("model.encoder='{\"kind\": \"transformer\", \"heads\": 3}'", "'model.encoder.heads'");
  fails("model.encoder.qk_norm=true", "'model.encoder.qk_norm'");
  fails("model.ensemble.members=2", "'model.ensemble.members'");
  fails("model.residual='{\"kind\": \"scalar_ornstein\", \"regressors\": [\"son\"]}'",
        "'son' is not an input");
  fails("loss.scalers='[\"general_variable\"]'", "node_weights");
  fails("data.timestep=5h", "'data.timestep': 5h is not a multiple");
  fails("train.validation.lead_times='[\"7h\"]'", "is not a multiple of data.timestep");
  fails("parallel.model=2", "'parallel.model'");
  fails("data.kind=anemoi", "'data.dataset.dataset': no dataset is named");
  fails("data.training.start=2030", "'data.training.end': 2020-01-05 is before the start, 2030");
  fails("data.training.end=80%", "'data.training.end': '80%' counts dates of a stored dataset");
  fails("run.dir=\"$(printf '\\377')\"", "'run.dir': the text is not valid UTF-8");
  fails("loss.time_weights=[0]", "'loss.time_weights': are all 0");
  REQUIRE(!fs::exists(run));
}

TEST_CASE("data that are missing or do not suffice exit with 3", "[program]") {
  const test::TemporaryFolder folder;
  const auto fails = [&](const std::string& more, const std::string& message) {
    INFO(more);
    require_clean_failure(run_train(folder.path() / "r", more), 3, message);
  };
  fails("--set data.kind=anemoi --set data.dataset=/nowhere/a.zarr", "/nowhere/a.zarr");
  write_file_atomic(folder.path() / "a.zarr.zip", "PK\x03\x04");
  fs::create_symlink("circle.zarr", folder.path() / "circle.zarr");
  const std::string at =
      concat("--set data.kind=anemoi --set data.dataset=", folder.path().string());
  fails(at + "/a.zarr.zip", "a.zarr.zip' is no zip file, or cut short");
  fails(at + "/circle.zarr", "cannot examine");
  fails("--set data.training.end=2020-01-01T06:00:00", "no training sample");
  fails("--set data.validation.end=2020-02-01T06:00:00", "no validation sample");
  fails("--set train.validation.lead_times='[\"240h\"]'", "no validation forecast of 240h");
  fails("--set train.rollout.start=50 --set train.rollout.maximum=50", "no training sample");
  fails("--validate-only", "no checkpoint");
  fails("--resume /nowhere", "/nowhere");
}

TEST_CASE("a loss that is not finite stops with 4 and names step and date", "[program]") {
  const test::TemporaryFolder folder;
  const auto result =
      run_train(folder.path() / "r",
                "--set optimizer.schedule.lr=100 --set optimizer.schedule.warmup_steps=0 "
                "--set optimizer.clip=none --set loss.variable_weights.default=1e38");
  require_clean_failure(result, 4, "step 1 (epoch 0, rank 0, sample of 2020-01-");
}

TEST_CASE("a run folder with checkpoints is not started over", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=3").exit_code == 0);
  const std::string metrics = read_file(run / "metrics.jsonl");
  require_clean_failure(run_train(run, "--set train.max_steps=3"), 2, "--resume");
  REQUIRE(read_file(run / "metrics.jsonl") == metrics);
}

TEST_CASE("a run folder is not started over even if its pointer is lost", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r", other = folder.path() / "other";
  REQUIRE(run_train(run, "--set train.max_steps=3").exit_code == 0);
  REQUIRE(run_train(other, "--set train.max_steps=2").exit_code == 0);
  const std::string metrics = read_file(run / "metrics.jsonl");
  // Nor may the weights of another run go on in it.
  require_clean_failure(run_train(run, "--resume '" + other.string() + "'"), 2, "earlier run");
  fs::remove(run / "checkpoints" / "latest");
  require_clean_failure(run_train(run, "--set train.max_steps=3"), 2, "earlier run");
  REQUIRE(read_file(run / "metrics.jsonl") == metrics);
}

TEST_CASE("two runs cannot share a folder", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  make_directories(run);
  const FileLock lock(run / "lock");
  REQUIRE(lock.held());
  require_clean_failure(run_train(run), 2, "another process is training in");
  REQUIRE(!fs::exists(run / "metrics.jsonl"));
}

TEST_CASE("validation alone needs the graph of the checkpoint, and a signal ends it", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=2").exit_code == 0);
  require_clean_failure(run_train(run, "--validate-only --set graph.edge_length_norm=unit-max"), 3,
                        "another graph");
  require_clean_failure(run_train(run, "--set run.mode=validate --resume"), 2, "--resume");
  // A run folder is as good as a checkpoint folder.
  REQUIRE(run_train(folder.path() / "v", "--validate-only '" + run.string() + "'").exit_code == 0);
  const auto stopped = run_command(concat(
      "timeout -s TERM 1 ",
      test::train_command(run,
                          "--validate-only --set data.analytic.max_degree=200 --set "
                          "train.validation.max_dates=0 --set data.validation.end=2020-12-31 "
                          "--set data.analytic.statistics_rows=100000")));
  REQUIRE(stopped.exit_code == 124);
}

#ifndef AIFS_SANITIZE  // sanitizers need address space without limit
TEST_CASE("too little memory is one message", "[program]") {
  const test::TemporaryFolder folder;
  const auto result =
      run_command("ulimit -v 3000000; " +
                  test::train_command(folder.path() / "r", "--set model.channels=65536"));
  require_clean_failure(result, 1, "out of memory");
  REQUIRE(result.err.find("frame #") == std::string::npos);
}
#endif

TEST_CASE("a run folder that cannot be made is an error before training", "[program]") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder.path() / "file", "");
  require_clean_failure(run_train(folder.path() / "file" / "r"), 1, "cannot create folder");
}

TEST_CASE("figures of every step are recorded", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=4 --set train.accumulate_batches=2").exit_code ==
          0);
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  std::string line;
  int64_t step = 0;
  while (std::getline(lines, line)) {
    const auto json = nlohmann::json::parse(line);
    REQUIRE(json["step"] == ++step);
    for (const char* key : {"loss", "lr", "step_s", "epoch"})
      REQUIRE(json.contains(key));
    REQUIRE(json["samples"] == 4);
  }
  REQUIRE(step == 4);
  REQUIRE(fs::exists(run / "train.log"));
  REQUIRE(!fs::is_empty(run / "tensorboard"));
}

TEST_CASE("synthetic runs compute on one sample and leave no checkpoint", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const auto result =
      run_train(run, "--set run.mode=synthetic --set train.max_steps=12 --set log.every_steps=1");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE_FALSE(fs::exists(run / "checkpoints" / "latest"));
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  double first = 0.0, last = 0.0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    last = json["loss"].get<double>();
    if (json["step"] == 1) first = last;
    REQUIRE(json["data_wait_s"].get<double>() == 0.0);
  }
  REQUIRE(last < first);  // the same sample again and again
  require_clean_failure(run_train(run, "--set run.mode=synthetic --resume"), 2, "run.mode");
}

TEST_CASE("losing the log files does not stop training", "[program]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  // The metrics file is a folder: no line can be written.
  make_directories(run / "metrics.jsonl");
  const auto result = run_train(run, "--set train.max_steps=3");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE_THAT(result.err, ContainsSubstring("metrics.jsonl"));
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000003" / "COMPLETE"));
}
