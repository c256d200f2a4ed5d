// SPDX-License-Identifier: Apache-2.0
// What a configuration may ask of training, run through the program.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_train;

namespace {

void require_exit(const test::CommandResult& result, int exit_code,
                  const std::string& message = "") {
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == exit_code);
  REQUIRE_THAT(result.out + result.err, ContainsSubstring(message));
}

std::vector<nlohmann::json> metrics_of(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::string set(const std::string& assignment) {
  return " --set '" + assignment + "'";
}

const std::string kFive = " --set train.max_steps=5 --set optimizer.schedule.total_steps=5";

}  // namespace

TEST_CASE("every kind of loss of single forecasts trains", "[training_options]") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> losses{
      set("loss.kind=huber"),
      set("loss.kind=logcosh"),
      set("loss.kind=rmse"),
      set(R"(loss.terms=[{"kind": "mse"}, {"kind": "mae", "weight": 0.5,
             "variables": ["ke_850"], "scalers": ["node_weights"]}])"),
      set(R"(loss.terms=[{"kind": "mse"}, {"kind": "spectral_amse", "weight": 0.1,
             "scalers": ["spectral"]}])"),
      set(R"(loss.scales={"num_scales": 2, "base_sigma": 0.2, "weights": [0.2, 0.3, 0.5]})"),
      set(R"(loss.scalers=["lead_time_decay", "variable_mask", "node_weights"])")};
  for (size_t i = 0; i < losses.size(); ++i) {
    INFO(losses[i]);
    const fs::path run = folder.path() / std::to_string(i);
    require_exit(run_train(run, " --set train.max_steps=2" + losses[i]), 0);
    for (const auto& line : metrics_of(run))
      REQUIRE(line["loss"].is_number());
  }
}

TEST_CASE("losses that cannot be are found before training", "[training_options]") {
  const test::TemporaryFolder folder;
  const auto check = [&](const std::string& assignment, const std::string& message) {
    INFO(assignment);
    require_exit(run_train(folder.path() / "r", "--check-config" + set(assignment)), 2, message);
  };
  const std::string spectral = R"("kind": "spectral_amse", "scalers": ["spectral"])";
  check("loss.terms=[{" + spectral + R"(, "transform": {"grid": "o16"}}])",
        "'loss.terms.0.transform': a transform of 1600 points for a field of 544");
  check("loss.terms=[{" + spectral + R"(, "transform": {"truncation": 16}}])",
        "'loss.terms.0.transform.truncation'");
  check("loss.terms=[{" + spectral + R"(, "transform": {"kind": "reduced_sht"}}])",
        "'loss.terms.0.transform.kind'");
  check("loss.kind=crps", "'loss.kind': 'crps' compares the members of an ensemble");
  check(R"(loss.terms=[{"kind": "graph_energy_score"}])", "'loss.terms.0.kind'");
  check(R"(loss.variables=["t_999"])", "'loss.variables.0': 't_999' is not predicted");
  check(R"(loss.masked_variables=["t_999"])", "'loss.masked_variables': is read by the scaler");
  check("loss.lead_time.decay=0.5", "'loss.lead_time': is read by the scaler");
  check(R"(data.postprocessor=[{"variables": ["t_999"]}])", "data.postprocessor.0.variables");
  check(R"(data.remapper=[{"variables": ["t_999"]}])", "data.remapper.0.variables");
}

TEST_CASE("maps of variables and post-processors are undone and applied", "[training_options]") {
  const test::TemporaryFolder folder;
  require_exit(run_train(folder.path() / "r",
                         kFive + set(R"(data.remapper=[{"variables": ["ke_850"], "method": "asinh",
                                    "c": 0.01}])") +
                             set(R"(data.postprocessor=[{"variables": ["ke_850"]}])")),
               0);
}

TEST_CASE("mixed precision follows single precision", "[training_options]") {
  const test::TemporaryFolder folder;
  require_exit(run_train(folder.path() / "fp32", kFive), 0);
  const auto single = metrics_of(folder.path() / "fp32");
  for (const std::string precision : {"bf16-mixed", "fp16-mixed"}) {
    INFO(precision);
    const fs::path run = folder.path() / precision;
    require_exit(run_train(run, kFive + set("train.precision=" + precision)), 0);
    const auto mixed = metrics_of(run);
    REQUIRE(mixed.size() == single.size());
    for (size_t i = 0; i < mixed.size(); ++i) {
      const auto a = mixed[i]["loss"].get<double>(), b = single[i]["loss"].get<double>();
      REQUIRE(std::abs(a - b) <= 2e-2 * b);
    }
    REQUIRE(mixed[0].contains("loss_scale") == (precision == "fp16-mixed"));
    const SafetensorsFile weights(run / "checkpoints/step-00000005/parameters.safetensors");
    for (const auto& [name, entry] : weights.entries())
      REQUIRE((entry.dtype == DType::kF32 || entry.dtype == DType::kI64));
  }
}

TEST_CASE("a bad step is described, its batch kept, and it may be skipped", "[training_options]") {
  const test::TemporaryFolder folder;
  const std::string bad = kFive + " --set loss.variable_weights.default=1e38";
  const fs::path stopped = folder.path() / "stopped", skipped = folder.path() / "skipped";
  require_exit(run_train(stopped, bad), 4, "the loss is inf");
  const fs::path dump = stopped / "nonfinite-step-1-rank-0";
  REQUIRE(fs::exists(dump / "batch.safetensors"));
  REQUIRE_THAT(read_file(dump / "report.txt"), ContainsSubstring("step 1 (epoch 0, rank 0"));
  require_exit(run_train(skipped, bad + set("train.on_nonfinite=skip")), 0, "the step is skipped");
  const auto lines = metrics_of(skipped);
  REQUIRE(lines.size() == 5);
  REQUIRE(lines[4]["skipped"] == true);
  const fs::path limited = folder.path() / "limited";
  require_exit(
      run_train(limited, bad + set("train.on_nonfinite=skip") + set("train.max_skipped_steps=2")),
      4, "step 3");
}

TEST_CASE("a timeline of some steps names their parts", "[training_options]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string two = set("profile.steps=2") + set("profile.first_step=3");
  require_exit(run_train(run, kFive + two), 0, "timeline of steps 3 to 4");
  const auto trace = nlohmann::json::parse(read_file(run / "trace-rank-0.json"));
  int64_t backward_passes = 0;
  for (const auto& event : trace.at("traceEvents"))
    backward_passes += event.value("name", "") == "backward" ? 1 : 0;
  REQUIRE(backward_passes == 2);
  // A run that ends meanwhile writes what there is.
  require_exit(run_train(folder.path() / "short",
                         kFive + set("profile.steps=100") + set("profile.first_step=5")),
               0);
  REQUIRE(fs::file_size(folder.path() / "short/trace-rank-0.json") > 1000);
}

TEST_CASE("a small memory budget changes memory, not losses", "[training_options]") {
  const test::TemporaryFolder folder;
  require_exit(run_train(folder.path() / "free", kFive), 0);
  require_exit(run_train(folder.path() / "small", kFive + set("model.memory_budget=0.003")), 0,
               "of the processor mlp: 0.00231 of 0.003 GiB");
  const auto free = metrics_of(folder.path() / "free"), small = metrics_of(folder.path() / "small");
  for (size_t i = 0; i < free.size(); ++i)
    REQUIRE(small[i]["loss"].get<double>() == Approx(free[i]["loss"].get<double>()).epsilon(1e-6));
  require_exit(run_train(folder.path() / "none", kFive + set("model.memory_budget=0.0001")), 2,
               "'model.memory_budget'");
}

TEST_CASE("weights that blow up are named", "[training_options]") {
  const test::TemporaryFolder folder;
  const auto result =
      run_train(folder.path() / "r",
                kFive + set("optimizer.schedule.lr=100") + set("optimizer.schedule.kind=constant") +
                    set("optimizer.clip=none") + set("optimizer.weight_decay=1e30"));
  INFO(result.err);
  REQUIRE(result.exit_code == 4);
  const bool named =
      result.err.find("weight '") != std::string::npos ||
      result.err.find("prediction of forecast step 1: variable") != std::string::npos;
  REQUIRE(named);
}

TEST_CASE("groups, frozen parts, slow means and averages survive a restart", "[training_options]") {
  const test::TemporaryFolder folder;
  const std::string more =
      " --set optimizer.schedule.total_steps=8 --set optimizer.schedule.warmup_steps=2" +
      set("optimizer.kind=ademamix") + set("optimizer.alpha_warmup=4") + set("checkpoint.keep=0") +
      set("optimizer.average.kind=ema") + set("optimizer.average.decay=0.5") +
      set(R"(optimizer.groups=[{"parameters": ["*.bias"], "weight_decay": 0}])") +
      set(R"(optimizer.freeze=["decoder"])");
  const fs::path whole = folder.path() / "whole", parted = folder.path() / "parted";
  require_exit(run_train(whole, more + " --set train.max_steps=8"), 0);
  require_exit(run_train(parted, more + " --set train.max_steps=4"), 0);
  require_exit(run_train(parted, more + " --set train.max_steps=8 --resume"), 0);
  const fs::path last = "checkpoints/step-00000008", first = "checkpoints/step-00000004";
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"})
    REQUIRE(read_file(whole / last / file) == read_file(parted / last / file));
  const SafetensorsFile before(parted / first / "parameters.safetensors");
  const SafetensorsFile after(parted / last / "parameters.safetensors");
  const SafetensorsFile states(parted / last / "optimizer.safetensors");
  for (const auto& [name, entry] : before.entries()) {
    if (entry.dtype != DType::kF32) continue;
    if (name.starts_with("decoder.")) REQUIRE(before.doubles(name) == after.doubles(name));
  }
  for (const char* state : {"slow_moment/", "average/"}) {
    bool found = false;
    for (const auto& [name, entry] : states.entries())
      found = found || name.starts_with(state);
    REQUIRE(found);
  }
  require_exit(run_train(parted, more + " --validate-only"), 0);
}

TEST_CASE("a run starts from the weights of another, and says what does not fit",
          "[training_options]") {
  const test::TemporaryFolder folder;
  const fs::path first = folder.path() / "first";
  require_exit(run_train(first, kFive), 0);
  const std::string from = set("init.from=" + (first / "checkpoints/step-00000005").string());
  const fs::path tuned = folder.path() / "tuned";
  require_exit(run_train(tuned, from + " --set train.max_steps=1"), 0, "starting from the weights");
  // The first step has rate 0: the weights are those of the other run.
  const SafetensorsFile a(first / "checkpoints/step-00000005/parameters.safetensors");
  const SafetensorsFile b(tuned / "checkpoints/step-00000001/parameters.safetensors");
  for (const auto& [name, entry] : a.entries())
    REQUIRE(a.doubles(name) == b.doubles(name));
  const std::string larger = " --set train.max_steps=1 --set model.layers=4";
  require_exit(run_train(folder.path() / "refused", from + larger), 2, "processor.proc.");
  require_exit(
      run_train(folder.path() / "allowed", from + larger + set(R"(init.may_skip=["processor"])")),
      0, "it keeps its first value");
}
