// SPDX-License-Identifier: Apache-2.0
// Training that goes on from weights: cool-downs of a run, adapters, other variables.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/app/ranks.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::lines_of;
using test::run_train;

namespace {

std::string set(const std::string& assignment) {
  return concat(" --set '", assignment, "' ");
}

// Runs of a small GraphTransformer with a Transformer as processor, in one folder.
class Tuning {
 public:
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  test::CommandResult tried(const std::string& name, const std::string& more) const {
    std::string network =
        set("model.processor.kind=transformer") + set("model.processor.window=20");
    for (const char* part : {"encoder", "decoder"})
      network += set(concat("model.", part, ".kind=graph_transformer"));
    for (const char* part : {"encoder", "processor", "decoder"})
      network += set(concat("model.", part, ".heads=2"));
    return run_train(run(name), network + more);
  }
  std::string train(const std::string& name, const std::string& more) const {
    const auto result = tried(name, more);
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    return result.out + result.err;
  }
  std::string refused(const std::string& more) const {
    const auto result = tried("refused", more);
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 2);
    return result.err;
  }
  std::string from(const std::string& name) const {
    return set(concat("init.from=", run(name).string()));
  }
  const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
};

std::string steps(int64_t count) {
  return concat(" --set train.max_steps=", count, " ");
}

fs::path checkpoint(const fs::path& run, int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return run / "checkpoints" / name;
}

SafetensorsFile weights(const fs::path& run, int64_t step) {
  return SafetensorsFile(checkpoint(run, step) / "parameters.safetensors");
}

std::vector<double> rates(const fs::path& run) {
  std::vector<double> found;
  for (const auto& line : lines_of(run / "metrics.jsonl"))
    found.push_back(line["lr"]);
  return found;
}

const std::string kNoValidation =
    set("train.validation.every_epochs=0") + set("train.validation.at_end=false");
const std::string kLora = set("optimizer.lora.rank=2") +
                          set(R"(optimizer.lora.parameters=["processor", "*.lin_query.weight"])") +
                          set(R"(optimizer.lora.train_whole=["decoder.0.node_data_extractor"])");

}  // namespace

TEST_CASE("a cool-down begins at any checkpoint of a constant rate, and is resumed to the bit",
          "[fine_tuning]") {
  const Tuning t;
  const std::string constant =
      kNoValidation + set("optimizer.schedule.kind=constant") + set("optimizer.schedule.lr=1e-3") +
      set("optimizer.schedule.lr_min=1e-4") + set("optimizer.schedule.warmup_steps=2") +
      set("checkpoint.every_steps=2") + set("checkpoint.keep=0") + set("log.every_steps=1");
  t.train("main", constant + steps(6));
  const std::string cooled = constant + set("optimizer.schedule.cooldown_steps=4") +
                             set("optimizer.schedule.cooldown=linear");
  const std::string branch = concat(" --resume '", checkpoint(t.run("main"), 4).string(), "'");
  t.train("cooled", cooled + steps(8) + branch);
  const std::vector<double> found = rates(t.run("cooled"));
  REQUIRE(found.size() == 4);
  for (size_t i = 0; i < 4; ++i)  // steps 5 to 8
    REQUIRE(found[i] == Approx(1e-3 - 0.9e-3 * static_cast<double>(i) / 4.0).epsilon(1e-12));
  // The same, stopped on the way: the end is named, as the length no longer does.
  const std::string end = set("optimizer.schedule.total_steps=8");
  t.train("parted", cooled + end + steps(6) + branch);
  t.train("parted", cooled + end + steps(8) + " --resume");
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"})
    REQUIRE(read_file(checkpoint(t.run("parted"), 8) / file) ==
            read_file(checkpoint(t.run("cooled"), 8) / file));
  REQUIRE(rates(t.run("main")).back() == 1e-3);
}

TEST_CASE("adapters alone are trained, resumed to the bit, and in the weights for all others",
          "[fine_tuning]") {
  const Tuning t;
  t.train("first", steps(8));
  const std::string tune = t.from("first") + kLora + set("optimizer.schedule.total_steps=6") +
                           set("optimizer.schedule.warmup_steps=1") + set("checkpoint.keep=0");
  const std::string text = t.train("tuned", tune + steps(6));
  REQUIRE_THAT(text, ContainsSubstring("adapters of rank 2") && ContainsSubstring("tensors of"));
  const SafetensorsFile before = weights(t.run("first"), 8), after = weights(t.run("tuned"), 6);
  int64_t adapted = 0, whole = 0;
  for (const auto& [name, entry] : before.entries()) {
    if (entry.dtype != DType::kF32) continue;
    const std::string stem = name.substr(0, name.rfind('.'));
    const bool changed = before.doubles(name) != after.doubles(name);
    if (after.contains(stem + ".lora_a") && name.ends_with(".weight")) {
      INFO(name);
      REQUIRE(after.doubles(stem + ".lora_base") == before.doubles(name));
      REQUIRE(changed);
      ++adapted;
    } else if (name.starts_with("decoder.0.node_data_extractor")) {
      whole += changed;
    } else {
      INFO(name);
      REQUIRE_FALSE(changed);
    }
  }
  REQUIRE(adapted == 14);  // q, k, v, projection and two of the MLP in two layers; two queries
  REQUIRE(whole == 4);
  t.train("parted", tune + steps(3));
  t.train("parted", tune + steps(6) + " --resume");
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"})
    REQUIRE(read_file(checkpoint(t.run("parted"), 6) / file) ==
            read_file(checkpoint(t.run("tuned"), 6) / file));
  // Weights are scored and handed on without adapters.
  const auto loss_of = [&](const std::string& name) {
    return lines_of(t.run(name) / "validation.jsonl").back()["loss"].get<double>();
  };
  const std::string still = set("optimizer.schedule.lr=0") + set("optimizer.schedule.lr_min=0");
  t.train("next", t.from("tuned") + still + steps(1));
  REQUIRE(loss_of("next") == Approx(loss_of("tuned")).epsilon(1e-6));
  const std::string exported = (t.folder().path() / "model").string();
  const std::string program = test::program("aifs-train").string();
  const auto result = test::run_command(
      concat("'", program, "' export '", t.run("tuned").string(), "' '", exported, "'"));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const SafetensorsFile model(fs::path(exported) / "model.safetensors");
  for (const auto& [name, entry] : model.entries())
    REQUIRE(name.find("lora") == std::string::npos);
  const auto imported = test::run_command(
      concat("'", program, "' import '", exported, "' '", t.run("imported").string(), "'"));
  INFO(imported.err);
  REQUIRE(imported.exit_code == 0);
}

TEST_CASE("adapters do not go with everything, and that is said before training", "[fine_tuning]") {
  const Tuning t;
  REQUIRE_THAT(t.refused(kLora), ContainsSubstring("optimizer.lora.rank"));
  const std::string start = set("init.from=nowhere") + kLora;
  REQUIRE_THAT(t.refused(start + set("parallel.sharding.states=optimizer")),
               ContainsSubstring("parallel.sharding.states"));
  REQUIRE_THAT(t.refused(start + set("parallel.tensor=2")), ContainsSubstring("parallel.tensor"));
  REQUIRE_THAT(t.refused(set("init.from=nowhere") + set("optimizer.lora.rank=2")),
               ContainsSubstring("optimizer.lora.parameters"));
  REQUIRE_THAT(
      t.refused(set("init.variables_by_name=true") + set("model.residual=scalar_ornstein")),
      ContainsSubstring("init.variables_by_name"));
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("adapters of replicas and of a sample over two ranks are those of one", "[fine_tuning]") {
  const test::TemporaryFolder folder;
  const std::string more = concat(test::kThreeSteps, "--set train.precision=fp64 ");
  const fs::path first = test::train_ranks(folder, 1, "first", more);
  const std::string tune =
      concat(more, "--set init.from='", first.string(), "' ", set("optimizer.lora.rank=2"),
             set(R"(optimizer.lora.parameters=["processor", "decoder"])"),
             "--set optimizer.clip=norm --set optimizer.clip_limit=0.1 "
             "--set optimizer.average.kind=ema ");
  const fs::path one = test::train_ranks(folder, 1, "one", tune);
  test::require_alike(test::train_ranks(folder, 2, "two", tune + "--set parallel.model=2 "), one,
                      "fp64");
  const std::string half = "--set data.batch_size=1 ";
  const fs::path replicas = test::train_ranks(folder, 2, "replicas", tune + half);
  const SafetensorsFile weights(replicas / test::kLast / "parameters.safetensors");
  REQUIRE(weights.contains("processor.proc.0.node_mlp.mlp.0.lora_a"));
}
#endif

TEST_CASE("inputs and outputs come and go by name, and forecasts of the others stay",
          "[fine_tuning]") {
  const Tuning t;
  const auto forcing = [](const std::string& more) {
    const std::string names =
        concat(R"(["cos_latitude","sin_latitude","cos_longitude","sin_longitude")", more, "]");
    return set("data.forcing=" + names) + set("data.normalizer.none=" + names);
  };
  const std::string sun = R"(,"cos_julian_day","sin_julian_day")",
                    still = set("optimizer.schedule.lr=0") + set("optimizer.schedule.lr_min=0") +
                            steps(1);
  // Without one of the forcings and one of the levels' variables.
  const std::string less =
      forcing(R"(,"sin_julian_day")") + set(R"(data.analytic.drop=["cos_julian_day", "vo_500"])");
  t.train("first", less + steps(8));
  const auto rmse = [&](const std::string& name) {
    return lines_of(t.run(name) / "validation.jsonl").back()["lead_times"]["6h"]["rmse"];
  };
  REQUIRE_THAT(t.refused(forcing(sun) + t.from("first")),
               ContainsSubstring("encoder.0.emb_nodes_src.weight") &&
                   ContainsSubstring("init.variables_by_name"));
  const std::string by_name = t.from("first") + set("init.variables_by_name=true");
  const std::string text = t.train("more", forcing(sun) + by_name + still);
  REQUIRE_THAT(text, ContainsSubstring("inputs by name, new: vo_500, cos_julian_day") ||
                         ContainsSubstring("inputs by name, new: cos_julian_day, vo_500"));
  REQUIRE_THAT(text, ContainsSubstring("outputs by name, new: vo_500"));
  const auto before = rmse("first"), after = rmse("more");
  REQUIRE(after.size() == before.size() + 1);
  for (const auto& [name, value] : before.items()) {
    INFO(name);
    REQUIRE(after[name].get<double>() == Approx(value.get<double>()).epsilon(1e-6));
  }
  // And back: what is left out is named, and what is left trains.
  const std::string fewer =
      t.train("fewer", set(R"(data.analytic.drop=["vo_500"])") + forcing(sun) +
                           set(concat("init.from=", t.run("more").string())) +
                           set("init.variables_by_name=true") + steps(2));
  REQUIRE_THAT(fewer, ContainsSubstring("left out: vo_500"));
}
