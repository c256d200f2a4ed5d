// SPDX-License-Identifier: Apache-2.0
// Slices of layers over ranks (parallel.tensor): the numbers of one rank, whole checkpoints.
#include "tests/app/ranks.h"

using namespace aifs;
using test::kLast;
using test::kThreeSteps;
using test::losses_of;
using test::parameter_difference;
using test::require_alike;
using test::require_close;
using test::require_same_bits;
using test::run_ranks;
using test::run_train;
using test::train_ranks;

namespace {

// Rollout, accumulation and clipping by the norm, which must see every slice once.
std::string training(const std::string& precision) {
  return concat(kThreeSteps, "--set train.precision=", precision,
                " --set train.rollout.start=2 --set train.rollout.maximum=2 ",
                "--set train.accumulate_batches=2 --set optimizer.clip=norm ",
                "--set optimizer.clip_limit=0.1 ");
}

std::string processor(const std::string& kind) {
  std::string more = concat("--set model.processor.kind=", kind, " ");
  if (kind != "gnn") more += "--set model.processor.heads=4 --set model.processor.qk_norm=true ";
  return more;
}

}  // namespace

TEST_CASE("sliced layers of every family train as on one rank", "[parallel]") {
  const test::TemporaryFolder folder;
  for (const std::string kind : {"gnn", "graph_transformer", "transformer"}) {
    for (const std::string precision : {"fp32", "fp64"}) {
      const std::string more = training(precision) + processor(kind);
      const fs::path one = folder.path() / concat(kind, precision);
      const auto alone = run_train(one, more);
      INFO(alone.err);
      REQUIRE(alone.exit_code == 0);
      for (const int ranks : precision == "fp32" ? std::vector{2} : std::vector{2, 3}) {
        INFO(kind << ", " << precision << ", " << ranks << " ranks");
        const fs::path dir = train_ranks(folder, ranks, concat(kind, precision, ranks),
                                         concat(more, "--set parallel.tensor=", ranks));
        require_alike(dir, one, precision);
      }
    }
  }
}

TEST_CASE("slices of layers go with divided samples and with replicas", "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more = training("fp64");
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  REQUIRE(run_train(one, more).exit_code == 0);
  REQUIRE(run_ranks(2, two, more).exit_code == 0);
  const std::string sliced = more + "--set parallel.tensor=2 ";
  require_alike(train_ranks(folder, 4, "model", sliced + "--set parallel.model=2"), one, "fp64");
  const fs::path data = train_ranks(folder, 4, "data", sliced);
  require_alike(data, two, "fp64");
  // Samples and dates count once, whatever ranks share them.
  const auto last = [](const fs::path& dir, const char* file) {
    return test::lines_of(dir / file).back();
  };
  REQUIRE(last(data, "metrics.jsonl")["samples"] == last(two, "metrics.jsonl")["samples"]);
  const test::Json ours = last(data, "validation.jsonl"), theirs = last(two, "validation.jsonl");
  REQUIRE(ours["num_dates"] == theirs["num_dates"]);
  for (const char* lead : {"6h", "12h"}) {
    REQUIRE(ours["lead_times"][lead]["mean_ratio"].get<double>() ==
            Approx(theirs["lead_times"][lead]["mean_ratio"].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("slices of layers go with shared-out states and divided attention", "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more =
      training("fp64") + processor("transformer") +
      "--set model.processor.recompute=block --set optimizer.average.kind=ema ";
  const std::string sliced = more + "--set parallel.tensor=2 ";
  const fs::path one = train_ranks(folder, 1, "one", more);
  const fs::path two = train_ranks(folder, 2, "two", more);
  for (const std::string states : {"optimizer", "parameters"}) {
    INFO(states);
    require_alike(
        train_ranks(folder, 4, states, sliced + "--set parallel.sharding.states=" + states), two,
        "fp64");
  }
  for (const std::string attention : {"heads", "sequence"}) {
    INFO("attention by " << attention);
    const std::string layout = concat("--set parallel.model=2 --set parallel.attention=", attention,
                                      " --set parallel.sharding.states=parameters");
    require_alike(train_ranks(folder, 4, attention, sliced + layout), one, "fp64");
  }
}

TEST_CASE("checkpoints of sliced layers are whole and resume under any layout", "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more =
      "--set train.precision=fp64 --set checkpoint.every_steps=4 --set optimizer.average.kind=ema "
      "--set optimizer.schedule.total_steps=12 ";
  const fs::path whole = folder.path() / "whole", changed = folder.path() / "changed";
  const auto steps = [&](int n) { return concat(more, "--set train.max_steps=", n, " "); };
  REQUIRE(run_train(whole, steps(12)).exit_code == 0);
  REQUIRE(run_ranks(3, changed, steps(4) + "--set parallel.tensor=3").exit_code == 0);
  REQUIRE(run_train(changed, steps(8) + "--resume").exit_code == 0);
  REQUIRE(run_ranks(4, changed,
                    steps(12) + "--set parallel.tensor=2 --set parallel.model=2 "
                                "--set parallel.sharding.states=parameters --resume")
              .exit_code == 0);
  require_close(losses_of(changed), losses_of(whole), 1e-13);
  REQUIRE(parameter_difference(changed / "checkpoints/step-00000012",
                               whole / "checkpoints/step-00000012") <= 1e-12);
  // A new run from those weights, and a validation of them.
  const std::string from =
      concat("--set train.precision=fp64 --set train.max_steps=1 --set init.from='",
             (changed / "checkpoints/step-00000012").string(), "' ");
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  REQUIRE(run_train(one, from).exit_code == 0);
  REQUIRE(run_ranks(2, two, from + "--set parallel.tensor=2").exit_code == 0);
  require_close(losses_of(two), losses_of(one), 1e-13);
  const auto validation = [&](const fs::path& dir) {
    return test::Json::parse(read_file(dir / "validation-step-12.json"))["loss"].get<double>();
  };
  REQUIRE(run_train(whole, steps(12) + "--validate-only").exit_code == 0);
  REQUIRE(run_ranks(2, changed, steps(12) + "--set parallel.tensor=2 --validate-only").exit_code ==
          0);
  REQUIRE(validation(changed) == Approx(validation(whole)).epsilon(1e-12));
}

TEST_CASE("a reproducible run with sliced layers gives the same bits on 1 and 2 processes",
          "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more =
      concat(kThreeSteps, "--set parallel.reproducible=true --set parallel.virtual_ranks=4 ",
             "--set parallel.tensor=2 --set parallel.model=2 ");
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  REQUIRE(run_train(one, more).exit_code == 0);
  REQUIRE(run_ranks(2, two, more).exit_code == 0);
  require_same_bits(two, one);
}

TEST_CASE("a step of sliced layers that is not finite ends the run on all ranks", "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string bad = concat(kThreeSteps, "--set loss.variable_weights.default=1e38 ");
  REQUIRE(run_ranks(2, folder.path() / "run", bad + "--set parallel.tensor=2").exit_code == 4);
}

TEST_CASE("what cannot be sliced is a mistake in the configuration", "[parallel]") {
  const test::TemporaryFolder folder;
  const auto heads = run_train(folder.path() / "a",
                               processor("transformer") + "--set parallel.tensor=5 --check-config");
  REQUIRE(heads.exit_code == 2);
  REQUIRE(heads.err.find("is 5, but model.processor has 4 attention heads") != std::string::npos);
  const auto point_wise = run_train(folder.path() / "b",
                                    "--set model.processor.kind=point_wise "
                                    "--set parallel.tensor=2 --check-config");
  REQUIRE(point_wise.exit_code == 2);
  REQUIRE(point_wise.err.find("a processor of kind \"point_wise\" cannot be sliced") !=
          std::string::npos);
}
