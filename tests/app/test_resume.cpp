// SPDX-License-Identifier: Apache-2.0
// Runs that are killed, interrupted or resumed end with the same bits as one that was not.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;
using test::run_train;

namespace {

constexpr const char* kLast = "checkpoints/step-00000040";

// Returns what must not depend on interruptions, of every step.
std::string essentials(const fs::path& lines_file) {
  std::istringstream lines(read_file(lines_file));
  std::string line, text;
  while (std::getline(lines, line)) {
    auto json = nlohmann::ordered_json::parse(line);
    json.erase("step_s");
    json.erase("data_wait_s");
    json.erase("rates");
    text += json.dump() + "\n";
  }
  return text;
}

void require_same_run(const fs::path& a, const fs::path& b, const std::string& last = kLast) {
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    REQUIRE(read_file(a / last / file) == read_file(b / last / file));
  }
  REQUIRE(essentials(a / "metrics.jsonl") == essentials(b / "metrics.jsonl"));
  REQUIRE(essentials(a / "validation.jsonl") == essentials(b / "validation.jsonl"));
}

std::vector<std::string> checkpoints_in(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void damage(const fs::path& file) {
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_atomic(file, bytes);
}

}  // namespace

TEST_CASE("a run killed at random moments and resumed ends bit-identical", "[resume]") {
  const char* wanted_text = std::getenv("AIFS_TEST_KILLS");  // 20 for the long version
  const int wanted = wanted_text ? std::atoi(wanted_text) : 3;
  const int steps = 20 * wanted;  // enough that the run is not over before
  const std::string more = concat("--set train.max_steps=", steps);
  char last[64];
  std::snprintf(last, sizeof last, "checkpoints/step-%08d", steps);

  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", killed = folder.path() / "killed";
  REQUIRE(run_train(whole, more).exit_code == 0);
  std::mt19937 random(20);
  int kills = 0;
  for (int attempt = 0; kills < wanted && attempt < 10 * wanted; ++attempt) {
    // From before the first step to some checkpoints later.
    const double delay_s = 0.2 + 0.6 * static_cast<double>(random() % 1000) / 1000.0;
    const auto result = run_command(
        concat("timeout -s KILL ", delay_s, " ", test::train_command(killed, more + " --resume")));
    if (result.exit_code != 0) ++kills;
    if (fs::exists(killed / last)) break;
  }
  REQUIRE(run_train(killed, more + " --resume").exit_code == 0);
  WARN("killed " << kills << " times");
  REQUIRE(kills > 0);
  require_same_run(whole, killed, last);
}

TEST_CASE("a signal makes the run write a checkpoint, exit with 5, and go on later", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", parted = folder.path() / "parted";
  // Long enough that the run is not over before, however busy the machine is.
  const std::string last = "checkpoints/step-00000200";
  const std::string more = "--set checkpoint.every_steps=0 --set train.max_steps=200";
  REQUIRE(run_train(whole, more).exit_code == 0);
  const auto stopped =
      run_command(concat("( ", test::train_command(parted, more), " & pid=$!; ",
                         "for i in $(seq 6000); do [ -s '", (parted / "metrics.jsonl").string(),
                         "' ] && break; sleep 0.02; done; kill -TERM $pid; wait $pid )"));
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 5);
  REQUIRE(!fs::exists(parted / last));
  REQUIRE(run_train(parted, more + " --resume").exit_code == 0);
  require_same_run(whole, parted, last);
}

TEST_CASE("every signal that schedulers and terminals send stops a run with a checkpoint",
          "[resume]") {
  const test::TemporaryFolder folder;
  const auto run_until = [&](const fs::path& run, const std::string& before,
                             const std::string& kills) {
    const std::string more = "--set checkpoint.every_steps=0 --set train.max_steps=100000";
    return run_command(concat("( ", before, test::train_command(run, more), " & pid=$!; ",
                              "for i in $(seq 6000); do [ -s '", (run / "metrics.jsonl").string(),
                              "' ] && break; sleep 0.02; done; ", kills, "wait $pid )"));
  };
  for (const std::string signal : {"HUP", "INT", "USR1", "USR2", "XCPU"}) {
    INFO(signal);
    const fs::path run = folder.path() / signal;
    // A shell's background processes ignore SIGINT.
    const std::string before = signal == "INT" ? "env --default-signal=INT " : "";
    const auto stopped = run_until(run, before, concat("kill -", signal, " $pid; "));
    INFO(stopped.err);
    REQUIRE(stopped.exit_code == 5);
    REQUIRE(fs::exists(run / "checkpoints" / "latest"));
  }
  // Signals that the starter ignores stay ignored: a terminal that is closed behind nohup.
  const auto stopped = run_until(folder.path() / "nohup", "trap '' HUP; ",
                                 "kill -HUP $pid; sleep 0.5; kill -0 $pid && kill -TERM $pid; ");
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 5);
}

TEST_CASE("a signal is heard in the middle of a long validation", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const std::string more =
      "--set checkpoint.every_steps=0 --set train.max_steps=100 --set "
      "train.validation.every_steps=3 "
      "--set data.analytic.end=2021-12-31 --set data.validation.end=2021-12-01 "
      "--set train.validation.max_dates=0 --set 'train.validation.lead_times=[\"6h\", \"240h\"]'";
  const std::string metrics = (run / "metrics.jsonl").string();
  const auto stopped = run_command(concat(
      "( ", test::train_command(run, more), " & pid=$!; ", "for i in $(seq 6000); do [ \"$(cat '",
      metrics, "' 2>/dev/null | wc -l)\" = 3 ] && break; sleep 0.02; done; sleep 0.5; ",
      "kill -TERM $pid; start=$(date +%s%N); wait $pid; code=$?; ",
      "echo $(( ($(date +%s%N) - start) / 1000000 )); exit $code )"));
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 5);
  WARN("ended after " << stopped.out << " ms");
  REQUIRE(std::stol(stopped.out) < 5000);  // all of it takes minutes
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000003" / "COMPLETE"));
  REQUIRE(fs::file_size(run / "validation.jsonl") == 0);
}

TEST_CASE("the time limit stops a run that can be resumed", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_minutes=1e-6").exit_code == 5);
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000001" / "COMPLETE"));
}

TEST_CASE("validation alone gives the figures of validation during training", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run).exit_code == 0);
  const auto alone = run_train(run, "--validate-only");
  REQUIRE(alone.exit_code == 0);
  REQUIRE_THAT(alone.out, ContainsSubstring("mean ratio"));
  const auto figures = nlohmann::ordered_json::parse(read_file(run / "validation-step-40.json"));
  const std::string lines = essentials(run / "validation.jsonl");
  const std::string last = lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  REQUIRE(figures.dump() + "\n" == last);
  // By name, and as a mode of the configuration, too.
  REQUIRE(run_train(run, concat("--validate-only '", (run / kLast).string(), "'")).out ==
          alone.out);
  REQUIRE(run_train(run, "--set run.mode=validate").out == alone.out);
}

TEST_CASE("a damaged checkpoint is passed over for the one before", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", run = folder.path() / "r";
  REQUIRE(run_train(whole).exit_code == 0);
  for (const std::string fault : {"a flipped bit in the weights", "a flipped bit in the manifest",
                                  "a truncated file", "no completion marker"}) {
    fs::remove_all(run);
    fs::copy(whole, run, fs::copy_options::recursive);
    if (fault.ends_with("weights")) damage(run / kLast / "parameters.safetensors");
    if (fault.ends_with("manifest")) damage(run / kLast / "manifest.json");
    if (fault.ends_with("file")) fs::resize_file(run / kLast / "optimizer.safetensors", 100);
    if (fault.ends_with("marker")) fs::remove(run / kLast / "COMPLETE");
    const auto resumed = run_train(run, "--resume");
    INFO(fault << ": " << resumed.err);
    REQUIRE(resumed.exit_code == 0);
    REQUIRE_THAT(resumed.err, ContainsSubstring("step-00000040' cannot be used"));
    REQUIRE_THAT(resumed.err, ContainsSubstring("resuming at step 35"));
    require_same_run(whole, run);
  }
}

TEST_CASE("if every checkpoint is damaged nothing is overwritten", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=3").exit_code == 0);
  damage(run / "checkpoints" / "step-00000003" / "parameters.safetensors");
  const auto result = run_train(run, "--resume");
  REQUIRE(result.exit_code == 3);
  REQUIRE_THAT(result.err, ContainsSubstring("none of the 1 checkpoints"));
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000003"));
}

TEST_CASE("a checkpoint of another model says which tensors differ", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=2").exit_code == 0);
  const auto wider = run_train(run, "--resume --set model.channels=12");
  REQUIRE(wider.exit_code == 3);
  REQUIRE_THAT(wider.err, ContainsSubstring("is of another model"));
  REQUIRE_THAT(wider.err,
               ContainsSubstring("decoder.0.emb_edges.mlp.0.weight' has shape [8, 11] in "
                                 "the checkpoint and [12, 11] in this model"));
  const auto deeper = run_train(run, "--resume --set model.layers=3");
  REQUIRE(deeper.exit_code == 3);
  REQUIRE_THAT(deeper.err, ContainsSubstring("is not in the checkpoint"));
  const auto other_graph = run_train(run, "--resume --set graph.edge_length_norm=unit-max");
  REQUIRE(other_graph.exit_code == 3);
  REQUIRE_THAT(other_graph.err, ContainsSubstring("another graph"));
}

TEST_CASE("what differs from the checkpoint's configuration is named", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set train.max_steps=2").exit_code == 0);
  const auto resumed =
      run_train(run, "--resume --set train.max_steps=4 --set optimizer.schedule.lr=1e-3");
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE_THAT(resumed.err, ContainsSubstring("numbers: optimizer.schedule.lr, "
                                              "optimizer.schedule.total_steps"));
}

TEST_CASE("a run that goes on from an earlier checkpoint keeps its own", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run).exit_code == 0);
  const std::string earlier = (run / "checkpoints" / "step-00000035").string();
  REQUIRE(run_train(run, concat("--resume '", earlier, "' --set train.max_steps=37")).exit_code ==
          0);
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000037" / "COMPLETE"));
  const auto next = run_train(run, "--resume --set train.max_steps=38");
  REQUIRE_THAT(next.err, ContainsSubstring("resuming at step 37"));
}

TEST_CASE("the time of a run is accounted for over restarts", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const auto file = [&] { return nlohmann::ordered_json::parse(read_file(run / "goodput.json")); };
  const auto whole = run_train(run, "--set train.max_steps=20");
  REQUIRE(whole.exit_code == 0);
  REQUIRE_THAT(whole.err, ContainsSubstring("goodput ") && ContainsSubstring(", 1 start; "));
  const auto first = file();
  REQUIRE(first["starts"] == 1);
  REQUIRE(first["step"] == 20);
  REQUIRE(first["seconds"]["lost_work"] == 0.0);
  REQUIRE(first["seconds"]["stepping"].get<double>() > 0.0);
  run_command("sleep 1.5");
  const std::string earlier = (run / "checkpoints" / "step-00000014").string();
  const auto again = run_train(
      run, concat("--set train.max_steps=21 --set log.every_steps=7 --resume '", earlier, "'"));
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  const auto second = file();
  REQUIRE(second["starts"] == 2);
  REQUIRE(second["first_start"] == first["first_start"]);
  REQUIRE(second["seconds"]["lost_work"].get<double>() > 0.0);
  REQUIRE(second["seconds"]["between_jobs"].get<double>() >= 1.4);
  REQUIRE(second["seconds"]["start"].get<double>() > first["seconds"]["start"].get<double>());
  double sum = 0.0;
  for (const auto& [cause, spent_s] : second["seconds"].items())
    sum += spent_s.get<double>();
  REQUIRE(sum == Approx(second["wall_s"].get<double>()).margin(0.01));
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  int64_t with_rates = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::ordered_json::parse(line);
    if (!json.contains("rates")) continue;
    ++with_rates;
    REQUIRE(json["rates"]["goodput"].get<double>() > 0.0);
    REQUIRE(json["rates"]["samples_per_s"].get<double>() > 0.0);
    REQUIRE(json["rates"]["tflops_per_s"].get<double>() > 0.0);
    REQUIRE_FALSE(json["rates"].contains("mfu"));
  }
  REQUIRE(with_rates >= 2);
  // A run that begins anew in the folder does not inherit the time.
  fs::remove_all(run / "checkpoints");
  const std::string machine = (test::source_folder() / "configs/machines/h200.json").string();
  REQUIRE(run_train(run, concat("--set train.max_steps=10 --set log.machine='", machine, "'"))
              .exit_code == 0);
  REQUIRE(file()["starts"] == 1);
  REQUIRE_THAT(read_file(run / "metrics.jsonl"), ContainsSubstring("\"mfu\":"));
}

TEST_CASE("only the newest checkpoints are kept, and latest names the last", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run).exit_code == 0);
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000035", "step-00000040"});
  REQUIRE(read_file(run / "checkpoints" / "latest") == "step-00000040\n");
}

TEST_CASE("checkpoints of chosen steps are kept for good, over restarts, too", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  const std::string keep = "--set checkpoint.keep=1 --set checkpoint.keep_every_steps=14 ";
  REQUIRE(run_train(run, keep + "--set train.max_steps=22").exit_code == 0);
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000014", "step-00000022"});
  REQUIRE(run_train(run, keep + "--resume").exit_code == 0);
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000014", "step-00000028", "step-00000040"});
}

TEST_CASE("checkpoints of a former course do not push out those of the present one", "[resume]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "r";
  REQUIRE(run_train(run, "--set checkpoint.keep=3").exit_code == 0);
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000028", "step-00000035", "step-00000040"});
  const std::string more = "--set checkpoint.keep=2 --set checkpoint.every_steps=0 --resume ";
  const std::string earlier = (run / "checkpoints" / "step-00000028").string();
  REQUIRE(run_train(run, concat(more, "'", earlier, "' --set train.max_steps=36")).exit_code == 0);
  // 35 was passed; of two that stay, 28 is one.
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000028", "step-00000036", "step-00000040"});
  REQUIRE(run_train(run, more + "--set train.max_steps=41").exit_code == 0);
  REQUIRE(checkpoints_in(run) ==
          std::vector<std::string>{"latest", "step-00000036", "step-00000041"});
}
