// SPDX-License-Identifier: Apache-2.0
// Layers in stages (parallel.pipeline): the numbers of one rank, whole checkpoints, clean ends.
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

std::string set(const std::string& assignment) {
  return " --set '" + assignment + "'";
}

std::string stages(int count) {
  return set(concat("parallel.pipeline=", count));
}

// Four layers, chunks, and clipping by the norm, which must see every stage.
std::string training(const std::string& precision, int batches, int rollout) {
  return concat(kThreeSteps, set("train.precision=" + precision), set("model.layers=4"),
                set(concat("train.accumulate_batches=", batches)),
                set(concat("train.rollout.start=", rollout)),
                set(concat("train.rollout.maximum=", rollout)), set("model.encoder.chunks=2"),
                set("model.decoder.chunks=3"), set("optimizer.clip=norm"),
                set("optimizer.clip_limit=0.1"), set("train.validation.max_dates=5"));
}

std::string kind(const std::string& name) {
  std::string options;
  for (const char* part : {"encoder", "processor", "decoder"}) {
    options += set(concat("model.", part, ".kind=", name));
    if (name != "gnn") options += set(concat("model.", part, ".heads=4"));
    if (name == "transformer" && std::string(part) != "processor")
      options += set(concat("model.", part, ".chunks=1"));
  }
  return options;
}

double last_ratio(const fs::path& dir) {
  return lines_of(dir / "validation.jsonl").back()["lead_times"]["12h"]["mean_ratio"];
}

}  // namespace

TEST_CASE("stages of every family train as on one rank", "[pipeline]") {
  const TemporaryFolder folder;
  using Sizes = std::vector<int>;
  for (const std::string name : {"gnn", "graph_transformer", "transformer"}) {
    // When stages work on which batch does not depend on what they hold.
    const bool all = name == "gnn";
    for (const auto& [precision, batches, rollout, sizes] :
         std::vector<std::tuple<std::string, int, int, Sizes>>{
             {"fp32", 1, 1, {4}},
             {"fp64", 5, 1, all ? Sizes{2, 3, 4} : Sizes{3}},
             {"fp64", 2, 2, all ? Sizes{2, 3} : Sizes{2}}}) {
      const std::string more = training(precision, batches, rollout) + kind(name);
      const std::string label = concat(name, precision, batches, rollout);
      const fs::path one = train_ranks(folder, 1, label, more);
      for (const int ranks : sizes) {
        INFO(label << ", " << ranks << " stages");
        const fs::path dir = train_ranks(folder, ranks, concat(label, ranks), more + stages(ranks));
        require_alike(dir, one, precision);
        REQUIRE(last_ratio(dir) == Approx(last_ratio(one)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("gradients of what a stage does not use go back, too", "[pipeline]") {
  const TemporaryFolder folder;
  // A point-wise decoder leaves the encoder's data rows unread.
  const std::string more = concat(
      kThreeSteps, set("train.precision=fp64"), set("model.latent_skip=false"),
      set("model.encoder.kind=point_wise"), set("model.processor.kind=point_wise"),
      set("model.decoder.kind=point_wise"), set("model.layers=2"), set("parallel.timeout_s=30"));
  const fs::path one = train_ranks(folder, 1, "one", more);
  require_alike(train_ranks(folder, 2, "two", more + stages(2)), one, "fp64");
}

TEST_CASE("stages go with divided samples, slices, replicas and shared-out states", "[pipeline]") {
  const TemporaryFolder folder;
  const std::string more =
      training("fp64", 3, 1) + kind("graph_transformer") + set("optimizer.average.kind=ema");
  const fs::path one = train_ranks(folder, 1, "one", more);
  const fs::path two = train_ranks(folder, 2, "two", more);
  const auto require = [&](const std::string& name, int ranks, const std::string& layout,
                           const fs::path& wanted) {
    INFO(name);
    require_alike(train_ranks(folder, ranks, name, concat(more, stages(2), layout)), wanted,
                  "fp64");
  };
  require("model", 4, set("parallel.model=2"), one);
  require("tensor", 4, set("parallel.tensor=2"), one);
  require("model and tensor", 8, set("parallel.model=2") + set("parallel.tensor=2"), one);
  require("data", 4, "", two);
  for (const std::string states : {"optimizer", "gradients", "parameters"})
    require(states, 4, set("parallel.sharding.states=" + states), two);
  require("uneven", 2, set("parallel.stage_layers=[0, 4]"), one);
  // Samples and dates count once, whatever stages there are.
  const auto last = [&](const char* dir, const char* file) {
    return lines_of(folder.path() / dir / file).back();
  };
  REQUIRE(last("data", "metrics.jsonl")["samples"] == last("two", "metrics.jsonl")["samples"]);
  REQUIRE(last("data", "validation.jsonl")["num_dates"] ==
          last("two", "validation.jsonl")["num_dates"]);
}

TEST_CASE("what was not measured counts nowhere in a pipeline", "[pipeline]") {
  const TemporaryFolder folder;
  const std::string more = training("fp64", 2, 2) + unmeasured_cells(folder);
  require_alike(train_ranks(folder, 3, "three", more + stages(3)),
                train_ranks(folder, 1, "one", more), "fp64");
}

TEST_CASE("a stage without anything to train passes gradients on", "[pipeline]") {
  const TemporaryFolder folder;
  const std::string more = training("fp64", 3, 1);
  for (const std::string frozen :
       {R"("encoder", "node_attributes", "encoder_graph_provider", "processor_graph_provider",
            "processor.proc.0", "processor.proc.1")",
        R"("processor.proc.2", "processor.proc.3", "decoder", "decoder_graph_provider")"}) {
    INFO("frozen: " << frozen);
    const std::string freeze = set(concat("optimizer.freeze=[", frozen, "]"));
    const TemporaryFolder runs;
    require_alike(train_ranks(runs, 2, "two", more + freeze + stages(2)),
                  train_ranks(runs, 1, "one", more + freeze), "fp64");
  }
}

TEST_CASE("checkpoints of stages are whole and resume under any layout", "[pipeline]") {
  const TemporaryFolder folder;
  const std::string more = concat(
      set("train.precision=fp64"), set("checkpoint.every_steps=4"),
      set("optimizer.average.kind=ema"), set("train.accumulate_batches=2"), set("model.layers=4"),
      set("optimizer.schedule.total_steps=12"), set("train.validation.max_dates=5"));
  const auto steps = [&](int n) { return more + set(concat("train.max_steps=", n)); };
  const fs::path whole = folder.path() / "whole", changed = folder.path() / "changed";
  REQUIRE(run_train(whole, steps(12)).exit_code == 0);
  REQUIRE(run_ranks(3, changed, steps(4) + stages(3)).exit_code == 0);
  REQUIRE(run_train(changed, steps(8) + " --resume").exit_code == 0);
  REQUIRE(run_ranks(4, changed,
                    steps(12) + stages(2) + set("parallel.tensor=2") +
                        set("parallel.sharding.states=parameters") + " --resume")
              .exit_code == 0);
  require_close(losses_of(changed), losses_of(whole), 1e-13);
  const char* last = "checkpoints/step-00000012";
  REQUIRE(parameter_difference(changed / last, whole / last) <= 1e-12);
  // A model for Anemoi, a new run from those weights, and a validation of them.
  REQUIRE(
      run_command(concat("'", program("aifs-train").string(), "' export --format anemoi '",
                         (changed / last).string(), "' '", (folder.path() / "model").string(), "'"))
          .exit_code == 0);
  const std::string from =
      concat(set("train.precision=fp64"), set("train.max_steps=1"), set("model.layers=4"),
             set(concat("init.from=", (changed / last).string())));
  require_close(losses_of(train_ranks(folder, 2, "two", from + stages(2))),
                losses_of(train_ranks(folder, 1, "one", from)), 1e-13);
  const auto validation = [&](const fs::path& dir) {
    return Json::parse(read_file(dir / "validation-step-12.json"))["loss"].get<double>();
  };
  REQUIRE(run_train(whole, steps(12) + " --validate-only").exit_code == 0);
  REQUIRE(run_ranks(3, changed, steps(12) + stages(3) + " --validate-only").exit_code == 0);
  REQUIRE(validation(changed) == Approx(validation(whole)).epsilon(1e-12));
}

TEST_CASE("a step of a pipeline that is not finite is dropped, or ends the run on all ranks",
          "[pipeline]") {
  const TemporaryFolder folder;
  const std::string bad = concat(kThreeSteps, set("train.accumulate_batches=3"),
                                 set("loss.variable_weights.default=1e38"), stages(2));
  const auto stopped = run_ranks(4, folder.path() / "stop", bad);
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 4);
  REQUIRE(stopped.err.find("the loss is inf") != std::string::npos);
  REQUIRE(stopped.err.find("the batch is in") != std::string::npos);
  const auto skipped =
      run_ranks(2, folder.path() / "skip",
                bad + set("train.on_nonfinite=skip") + set("train.max_skipped_steps=9"));
  INFO(skipped.err);
  REQUIRE(skipped.exit_code == 0);
  REQUIRE(lines_of(folder.path() / "skip" / "metrics.jsonl").back()["skipped"] == true);
}

TEST_CASE("a pipeline of which a stage is killed within a step goes on with the same bits",
          "[pipeline]") {
  const TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", killed = folder.path() / "killed";
  const std::string more = concat(set("train.max_steps=60"), set("checkpoint.every_steps=10"),
                                  set("train.accumulate_batches=3"), set("model.layers=3"),
                                  set("parallel.timeout_s=120"), stages(3));
  REQUIRE(run_ranks(3, whole, more).exit_code == 0);
  const std::string wait_and_kill =
      concat("(while [ ! -e \"", killed.string(), "/checkpoints/latest\" ] && kill -0 $$; do ",
             "sleep 0.05; done; kill -KILL $$) &");
  // If the killer is late, the run ends before it: then another one is killed.
  CommandResult result;
  const auto was_late = [&] {
    return result.exit_code == 0 || fs::exists(killed / "checkpoints/step-00000060");
  };
  for (int attempt = 0; attempt == 0 || (attempt < 10 && was_late()); ++attempt) {
    fs::remove_all(killed);
    result = run_command(concat(mpirun(3), "sh -c 'if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then ",
                                wait_and_kill, " fi; exec \"$0\" \"$@\"' ",
                                train_command(killed, more)));
  }
  INFO(result.err);
  REQUIRE_FALSE(was_late());
  REQUIRE(fs::exists(killed / "checkpoints/latest"));
  REQUIRE(run_ranks(3, killed, more + " --resume").exit_code == 0);
  require_same_bits(killed, whole, "checkpoints/step-00000060");
}

TEST_CASE("what cannot be divided into stages is a mistake in the configuration", "[pipeline]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& more, const std::string& reason) {
    const auto result = run_train(folder.path(), more + " --check-config");
    INFO(result.err);
    REQUIRE(result.exit_code == 2);
    REQUIRE(result.err.find(reason) != std::string::npos);
  };
  refused(set("model.layers=2") + stages(3), "stages without a layer of the 2");
  refused(set("model.layers=4") + stages(3) + set("parallel.stage_layers=[2, 0, 2]"),
          "stages without a layer of the 4");
  refused(set("model.layers=4") + stages(2) + set("parallel.stage_layers=[2, 1]"),
          "names 3 layers of 2 stages");
  refused(stages(2) + set("train.rollout.recompute=true"), "train.rollout.recompute");
  refused(stages(2) + set("model.processor.kind=none") + set("model.latent_skip=false"),
          "a processor of kind \"none\" has no layers");
  refused(stages(2) + set("parallel.reproducible=true"), "parallel.reproducible");
}
