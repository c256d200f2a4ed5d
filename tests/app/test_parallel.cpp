// SPDX-License-Identifier: Apache-2.0
// The program under mpirun: the same numbers on any layout (for other networks than the GNN see
// test_parallel_families.cpp, for slices of layers test_tensor_parallel.cpp), checkpoints that fit
// any layout, and an end for all when one rank ends.
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

struct Layout {
  int ranks, model;
  std::string more;
};

}  // namespace

TEST_CASE("a sample over many ranks trains as on one, in fp32 and fp64", "[parallel]") {
  const TemporaryFolder folder;
  const std::string rollout = "--set train.rollout.start=2 --set train.rollout.maximum=2 ";
  for (const std::string precision : {"fp32", "fp64"}) {
    const std::string more = concat(kThreeSteps, rollout, "--set train.precision=", precision, " ");
    const fs::path one = folder.path() / precision;
    REQUIRE(run_train(one, more).exit_code == 0);
    const Layout three{3, 3, "--set parallel.mapper_sources=all"};
    for (const Layout& layout :
         precision == "fp32" ? std::vector<Layout>{three}
                             : std::vector<Layout>{{2, 2, ""}, three, {6, 6, ""}, {8, 8, ""}}) {
      INFO(precision << ", " << layout.ranks << " ranks");
      const fs::path dir = folder.path() / concat(precision, layout.ranks);
      const auto result = run_ranks(
          layout.ranks, dir, concat(more, "--set parallel.model=", layout.model, " ", layout.more));
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      require_close(losses_of(dir), losses_of(one), precision == "fp32" ? 1e-6 : 1e-13);
      REQUIRE(parameter_difference(dir / kLast, one / kLast) <=
              (precision == "fp32" ? 1e-5 : 1e-12));
    }
  }
}

TEST_CASE("ranks of a host read together, with the bits of each reading for itself", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more = concat(kThreeSteps, "--set parallel.model=3 ");
  for (const char* share : {"true", "false"}) {
    const auto result =
        run_ranks(3, folder.path() / share, concat(more, "--set data.share_on_host=", share, " "));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"})
    REQUIRE(read_file(folder.path() / "true" / kLast / file) ==
            read_file(folder.path() / "false" / kLast / file));
  // Reading alone, and computing alone.
  const auto io = run_ranks(2, folder.path() / "io",
                            concat(kThreeSteps, "--set parallel.model=2 --set run.mode=io "));
  INFO(io.err);
  REQUIRE(io.exit_code == 0);
  REQUIRE_THAT(io.err, ContainsSubstring("read 3 steps") && ContainsSubstring("samples/s"));
  REQUIRE_FALSE(fs::exists(folder.path() / "io" / "checkpoints"));
}

TEST_CASE("losses of waves and of scales divide over ranks", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more =
      concat(kThreeSteps, "--set train.precision=fp64 --set 'loss.terms=[{\"kind\": \"mse\"}, ",
             "{\"kind\": \"spectral_amse\", \"weight\": 0.1, \"scalers\": [\"spectral\"]}, ",
             "{\"kind\": \"mae\", \"scales\": {\"num_scales\": 2, \"base_sigma\": 0.2, ",
             "\"weights\": [0.2, 0.3, 0.5]}}]' ");
  const fs::path one = folder.path() / "one", divided = folder.path() / "divided";
  REQUIRE(run_train(one, more).exit_code == 0);
  const auto result = run_ranks(3, divided, more + "--set parallel.model=3 ");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  require_close(losses_of(divided), losses_of(one), 1e-12);
  REQUIRE(parameter_difference(divided / kLast, one / kLast) <= 1e-11);
  const double a = lines_of(divided / "validation.jsonl").back()["loss"];
  const double b = lines_of(one / "validation.jsonl").back()["loss"];
  REQUIRE(a == Approx(b).epsilon(1e-11));
}

TEST_CASE("a step that is not finite is skipped or ends the run on all ranks", "[parallel]") {
  const TemporaryFolder folder;
  const std::string bad = concat(kThreeSteps, "--set loss.variable_weights.default=1e38 ");
  for (const std::string model : {"1", "2"}) {
    const fs::path skipped = folder.path() / ("skipped" + model);
    const std::string more = bad + "--set parallel.model=" + model + " ";
    REQUIRE(run_ranks(2, skipped, more + "--set train.on_nonfinite=skip").exit_code == 0);
    const std::vector<Json> lines = lines_of(skipped / "metrics.jsonl");
    REQUIRE(lines.size() == 3);
    REQUIRE(lines[2]["skipped"] == true);
    REQUIRE(run_ranks(2, folder.path() / ("stopped" + model), more).exit_code == 4);
  }
}

TEST_CASE("replicas train alike whether or not each is divided", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more = concat(kThreeSteps, "--set train.precision=fp64 ");
  const fs::path plain = folder.path() / "plain", divided = folder.path() / "divided";
  REQUIRE(run_ranks(2, plain, more).exit_code == 0);
  REQUIRE(run_ranks(4, divided, more + "--set parallel.model=2 ").exit_code == 0);
  require_close(losses_of(divided), losses_of(plain), 1e-13);
  REQUIRE(parameter_difference(divided / kLast, plain / kLast) <= 1e-12);
  // Validation dates are shared out over replicas, and count once.
  const Json a = lines_of(plain / "validation.jsonl").back();
  const Json b = lines_of(divided / "validation.jsonl").back();
  REQUIRE(a["num_dates"] == 3);
  REQUIRE(b["num_dates"] == 3);
  REQUIRE(a["loss"].get<double>() == Approx(b["loss"].get<double>()).epsilon(1e-12));
  // The checkpoint validates on one rank with the same figures.
  REQUIRE(run_train(plain, more + "--validate-only").exit_code == 0);
  const Json alone = Json::parse(read_file(plain / "validation-step-3.json"));
  REQUIRE(alone["loss"].get<double>() == Approx(a["loss"].get<double>()).epsilon(1e-12));
}

TEST_CASE("moments, gradients and values that are shared out train as whole ones do",
          "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more =
      concat(kThreeSteps,
             "--set train.precision=fp64 --set train.rollout.start=2 --set train.rollout.maximum=2 "
             "--set parallel.gradients.overlap=true "
             "--set parallel.gradients.bucket_mb=0.02 --set model.encoder.chunks=2 "
             "--set model.decoder.chunks=2 --set model.decoder.recompute=block ");
  const fs::path plain = folder.path() / "plain";
  REQUIRE(run_ranks(2, plain, more).exit_code == 0);
  for (const Layout& layout : std::vector<Layout>{
           {2, 1, "--set parallel.sharding.states=optimizer"},
           {2, 1, "--set parallel.sharding.states=gradients"},
           {2, 1, "--set parallel.sharding.states=parameters"},
           {4, 2,
            "--set parallel.sharding.states=parameters --set model.processor.recompute=block "
            "--set model.processor.edge_ranges=2 --set model.processor.offload=1"},
           {6, 3, "--set parallel.sharding.states=gradients --set parallel.sharding.ranks=3"}}) {
    INFO(layout.ranks << " ranks, " << layout.more);
    const fs::path dir = folder.path() / "shared";
    fs::remove_all(dir);
    const auto result = run_ranks(
        layout.ranks, dir, concat(more, "--set parallel.model=", layout.model, " ", layout.more));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    require_close(losses_of(dir), losses_of(plain), 1e-13);
    REQUIRE(parameter_difference(dir / kLast, plain / kLast) <= 1e-12);
    const Json a = lines_of(plain / "validation.jsonl").back();
    const Json b = lines_of(dir / "validation.jsonl").back();
    REQUIRE(a["loss"].get<double>() == Approx(b["loss"].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("shared-out values go with gradients added in place, growing rollouts and frozen layers",
          "[parallel]") {
  const test::TemporaryFolder folder;
  const std::string more = concat(
      kThreeSteps,
      "--set train.precision=fp64 --set data.batch_size=6 --set train.rollout.epoch_increment=1 "
      "--set train.rollout.maximum=3 --set parallel.gradients.overlap=true "
      "--set parallel.gradients.bucket_mb=0.02 "
      "--set model.encoder.chunks=2 --set model.decoder.chunks=2 --set optimizer.clip=norm "
      "--set optimizer.clip_limit=0.1 --set 'optimizer.freeze=[\"processor.proc.0.conv\"]' ");
  const fs::path plain = folder.path() / "plain", fused = folder.path() / "fused";
  REQUIRE(run_ranks(2, plain, more + "--set model.kernels=reference ").exit_code == 0);
  REQUIRE(lines_of(plain / "metrics.jsonl").back()["rollout"].get<int>() > 1);
  for (const std::string states : {"gradients", "parameters"}) {
    fs::remove_all(fused);
    const auto result = run_ranks(
        2, fused,
        concat(more, "--set model.kernels=fused --set parallel.sharding.states=", states, " "));
    INFO(states << ": " << result.err);
    REQUIRE(result.exit_code == 0);
    require_close(losses_of(fused), losses_of(plain), 1e-12);
    REQUIRE(parameter_difference(fused / kLast, plain / kLast) <= 1e-11);
  }
}

TEST_CASE("a checkpoint of one layout resumes under another", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more = "--set train.precision=fp64 --set checkpoint.every_steps=5 ";
  const fs::path whole = folder.path() / "whole", changed = folder.path() / "changed";
  REQUIRE(run_train(whole, more + "--set train.max_steps=10").exit_code == 0);
  REQUIRE(
      run_ranks(3, changed, more + "--set parallel.model=3 --set train.max_steps=5").exit_code ==
      0);
  REQUIRE(run_ranks(2, changed,
                    more + "--set parallel.model=2 --set train.max_steps=10 --resume "
                           "--set parallel.sharding.states=parameters")
              .exit_code == 0);
  require_close(losses_of(changed), losses_of(whole), 1e-13);
  REQUIRE(parameter_difference(changed / "checkpoints/step-00000010",
                               whole / "checkpoints/step-00000010") <= 1e-12);
}

TEST_CASE("a run from the weights of another starts the same on any layout", "[parallel]") {
  const TemporaryFolder folder;
  const std::string fp64 = "--set train.precision=fp64 ";
  const fs::path first = folder.path() / "first", alone = folder.path() / "alone";
  REQUIRE(run_train(first, kThreeSteps + fp64).exit_code == 0);
  const std::string more = concat(fp64, "--set run.seed=8 --set train.max_steps=1 --set init.from=",
                                  (first / kLast).string(), " ");
  REQUIRE(run_train(alone, more).exit_code == 0);
  for (const std::string states : {"none", "parameters"}) {
    INFO("sharding of " << states);
    const fs::path dir = folder.path() / states;
    const auto result = run_ranks(
        2, dir, concat(more, "--set parallel.model=2 --set parallel.sharding.states=", states));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    require_close(losses_of(dir), losses_of(alone), 1e-13);
    // The first step has rate 0: these are the weights of the other run.
    REQUIRE(read_file(dir / "checkpoints/step-00000001/parameters.safetensors") ==
            read_file(first / kLast / "parameters.safetensors"));
  }
}

TEST_CASE("a reproducible run gives the same bits on 1, 2, 4 and 8 processes", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more = concat(
      kThreeSteps, "--set parallel.reproducible=true --set parallel.model=4 --set data.threads=1 ");
  const fs::path one = folder.path() / "one";
  REQUIRE(run_train(one, more).exit_code == 0);
  for (const int processes : {2, 4, 8}) {
    INFO(processes << " processes");
    const fs::path dir = folder.path() / concat("on", processes);
    REQUIRE(run_ranks(processes, dir, more).exit_code == 0);
    require_same_bits(dir, one);
    REQUIRE(read_file(dir / "validation.jsonl") == read_file(one / "validation.jsonl"));
  }
  const auto uneven = run_ranks(3, folder.path() / "uneven", more);
  REQUIRE(uneven.exit_code == 2);
  REQUIRE(uneven.err.find("parallel.virtual_ranks") != std::string::npos);
}

TEST_CASE("a reproducible run changed to another number of processes goes on with the same bits",
          "[parallel]") {
  const TemporaryFolder folder;
  const std::string more =
      "--set parallel.reproducible=true --set parallel.virtual_ranks=4 --set parallel.model=4 "
      "--set checkpoint.every_steps=5 ";
  const fs::path whole = folder.path() / "whole", changed = folder.path() / "changed";
  REQUIRE(run_train(whole, more + "--set train.max_steps=10").exit_code == 0);
  REQUIRE(run_ranks(2, changed, more + "--set train.max_steps=5").exit_code == 0);
  REQUIRE(run_train(changed, more + "--set train.max_steps=10 --resume").exit_code == 0);
  const char* last = "checkpoints/step-00000010/parameters.safetensors";
  REQUIRE(read_file(changed / last) == read_file(whole / last));
}

TEST_CASE("sizes that do not multiply to the number of ranks are a mistake, said once",
          "[parallel]") {
  const TemporaryFolder folder;
  const auto two =
      run_ranks(2, folder.path() / "a", "--set parallel.model=2 --set parallel.data=2");
  REQUIRE(two.exit_code == 2);
  const std::string text = two.err;
  const size_t first = text.find("model 2 x data 2 = 4 ranks, but 2 were started");
  REQUIRE(first != std::string::npos);
  REQUIRE(text.find("ranks, but 2 were started", first + 60) == std::string::npos);
  REQUIRE_FALSE(fs::exists(folder.path() / "a"));
  const auto one = run_train(folder.path() / "b", "--set parallel.model=3");
  REQUIRE(one.exit_code == 2);
  REQUIRE(one.err.find("parallel.model") != std::string::npos);
}

TEST_CASE("ranks with other options than the first are found at the start", "[parallel]") {
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  const std::string one = train_command(dir, "--set parallel.model=2");
  const auto result =
      run_command(concat(mpirun(1), one, " --set run.seed=1 : -n 1 ", one, " --set run.seed=2"));
  REQUIRE(result.exit_code == 2);
  REQUIRE(result.err.find("the configuration of rank 1 differs") != std::string::npos);
  REQUIRE_FALSE(fs::exists(dir / "metrics.jsonl"));
}

TEST_CASE("what fails on the main rank ends all, with its exit code", "[parallel]") {
  const TemporaryFolder folder;
  REQUIRE(
      run_ranks(2, folder.path() / "a", concat(kThreeSteps, "--set parallel.model=2")).exit_code ==
      0);
  const auto again =
      run_ranks(2, folder.path() / "a", concat(kThreeSteps, "--set parallel.model=2"));
  REQUIRE(again.exit_code == 2);
  REQUIRE(again.err.find("holds checkpoints of an earlier run") != std::string::npos);
}

TEST_CASE("when one rank is stopped the others end within the time limit and say who waits",
          "[parallel]") {
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  // Once there is a checkpoint the last rank is stopped: it hangs.
  const std::string hang =
      concat(mpirun(3), "sh -c 'if [ \"$OMPI_COMM_WORLD_RANK\" = 2 ]; then (while [ ! -e \"",
             dir.string(), "/checkpoints/latest\" ]; do sleep 0.2; done; kill -STOP $$; sleep 45; ",
             "kill -KILL $$) & fi; exec \"", program("aifs-train").string(), "\" --config \"",
             tiny_config(), "\" --set run.dir=\"", dir.string(),
             "\" --set train.max_steps=1000000 --set parallel.model=3 --set parallel.timeout_s=8 ",
             "--set checkpoint.every_steps=20 --set log.tensorboard=false'");
  const auto result = run_command(hang);
  INFO(result.err);
  REQUIRE(result.exit_code != 0);
  REQUIRE(result.err.find("has waited 8 s in") != std::string::npos);
  // Which of the others is first is open; the launcher may end the second before it speaks.
  const bool named = result.err.find("] rank 0 on ") != std::string::npos ||
                     result.err.find("] rank 1 on ") != std::string::npos;
  REQUIRE(named);
  // The last checkpoint is whole.
  REQUIRE(run_train(dir, "--validate-only").exit_code == 0);
}

TEST_CASE("all ranks leave a validation when one of them is asked to stop", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more =
      "--set checkpoint.every_steps=0 --set train.max_steps=100 --set "
      "train.validation.every_steps=2 "
      "--set data.analytic.end=2021-12-31 --set data.validation.end=2021-12-01 "
      "--set train.validation.max_dates=0 --set 'train.validation.lead_times=[\"6h\", \"240h\"]' ";
  for (const std::string layout : {"data", "model", "pipeline"}) {
    INFO(layout);
    const fs::path run = folder.path() / layout;
    const std::string metrics = (run / "metrics.jsonl").string();
    const auto stopped = run_command(
        concat("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; ( ", mpirun(2),
               train_command(run, concat(more, "--set parallel.", layout, "=2")), " & pid=$!; ",
               "for i in $(seq 6000); do [ \"$(cat '", metrics,
               "' 2>/dev/null | wc -l)\" = 2 ] && break; sleep 0.02; done; sleep 0.5; ",
               "kill -TERM $(pgrep -P $pid | tail -1); start=$(date +%s%N); wait $pid; code=$?; ",
               "echo $(( ($(date +%s%N) - start) / 1000000 )); exit $code )"));
    INFO(stopped.err);
    REQUIRE(stopped.exit_code == 5);
    WARN("ended after " << stopped.out << " ms");
    REQUIRE(std::stol(stopped.out) < 8000);  // all of it takes minutes
    REQUIRE(fs::exists(run / "checkpoints" / "step-00000002" / "COMPLETE"));
    REQUIRE(fs::file_size(run / "validation.jsonl") == 0);
  }
}
