// SPDX-License-Identifier: Apache-2.0
#include "bench/step.h"

#include <nlohmann/json.hpp>

#include "bench/step_run.h"
#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/bench/small_case.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::bench;
using test::case_config;
using test::small_case;

namespace {

const parallel::ProcessMesh& one_rank() {
  static const parallel::ProcessMesh mesh;
  return mesh;
}

}  // namespace

TEST_CASE("every case has the variables and the model of the published measurements", "[bench]") {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_folder() / "bench/cases")) {
    if (entry.is_directory()) continue;
    INFO(entry.path().string());
    const app::RunConfig config = app::load_config(entry.path().string(), {});
    REQUIRE(config.model.layers == 16);
    REQUIRE(config.data.batch_size == 1);
    REQUIRE(can_check(config));
    // The name says what it is.
    const std::string name = entry.path().stem().string();
    const bool gnn = name.starts_with("gnn-");
    REQUIRE((config.model.encoder.kind == model::BlockKind::kGnn) == gnn);
    const std::optional<int64_t> refinement = config.graph.hidden.kind->refinement();
    const std::string sizes = concat("-", config.graph.grid, "-",
                                     refinement ? concat("tri", *refinement) : "o96", "-bf16");
    const std::string channels =
        name.starts_with("aifs-single-") ? "" : concat("-", config.model.channels);
    REQUIRE(name.find(channels + sizes) != std::string::npos);
    REQUIRE(config.train.precision == train::Precision::kBf16Mixed);
    ++count;
  }
  REQUIRE(count == 12);
}

TEST_CASE("a case is as large as the published one", "[bench]") {
  // Anemoi has 48.4 million parameters there.
  const StepRun run(case_config("gnn-512-o96-tri5-bf16"), one_rank(), at::kCPU);
  REQUIRE(static_cast<double>(run.run().parameters().num_trainable()) ==
          Approx(48.4e6).epsilon(1e-3));
  const data::VariableTable& variables = run.run().data().variables;
  REQUIRE(variables.num_prognostic() == 88);
  REQUIRE(variables.num_inputs() == 88 + 13);
  REQUIRE(variables.num_outputs() == 88 + 1);
}

TEST_CASE("every kind of network and every memory setting has the same gradients", "[bench]") {
  for (const char* name :
       {"gnn-512-n320-tri6-bf16-37gib", "gnn-512-n320-tri6-bf16-18gib", "gt-1024-n320-tri6-bf16",
        "gt-1024-n320-tri6-bf16-16gib", "transformer-1024-n320-tri6-bf16"}) {
    const auto json = check_equality(small_case(name), at::kCPU, one_rank());
    INFO(name << " " << json.dump());
    REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
  }
}

TEST_CASE("layers in ranges of edges, inputs on the host: the same gradients", "[bench]") {
  for (const char* policy : {"block", "full"}) {
    for (const int64_t rollout : {1, 2}) {
      const auto config = small_case(
          "gnn-512-n320-tri6-bf16-18gib",
          {"model.layers=4", concat("model.processor.recompute=", policy),
           concat("model.processor.chunks=", policy == std::string("full") ? 2 : 1),
           "model.processor.edge_ranges=3", "model.processor.offload=1",
           concat("train.rollout.start=", rollout), concat("train.rollout.maximum=", rollout)});
      const auto json = check_equality(config, at::kCPU, one_rank());
      INFO(json.dump());
      REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
    }
  }
}

TEST_CASE("a forecast whose steps run again has the gradients of one that keeps them", "[bench]") {
  for (const char* name : {"gnn-512-n320-tri6-bf16", "gt-1024-n320-tri6-bf16-16gib"}) {
    const auto config =
        small_case(name, {"model.layers=2", "train.rollout.start=3", "train.rollout.maximum=3"});
    const auto json = check_equality(config, at::kCPU, one_rank());
    INFO(json.dump());
    REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
  }
}

TEST_CASE("steps and forecasts are timed, and steps lower the loss", "[bench]") {
  for (const int64_t rollout : {1, 2}) {
    const auto config = small_case(
        "gnn-512-n320-tri6-bf16",
        {concat("train.rollout.start=", rollout), concat("train.rollout.maximum=", rollout)});
    const StepBenchOptions options{.name = "small", .mesh = one_rank(), .warm_up = 1, .steps = 3};
    const auto json = time_steps(config, options);
    INFO(json.dump());
    REQUIRE(json["case"] == "small");
    REQUIRE(json["step_ms"].get<double>() > 0.0);
    REQUIRE(json["rollout"] == rollout);
    REQUIRE(json["last_loss"].get<double>() < json["first_loss"].get<double>());
    REQUIRE(json["nodes"][0] == 544);
    REQUIRE(json["tflop"].get<double>() > 0.0);
  }
}

TEST_CASE("fp32 on the CPU equals itself, bf16-mixed is within its bounds", "[bench]") {
  const auto same = check_equality(
      small_case("gnn-512-n320-tri6-bf16", {"model.kernels=reference"}), at::kCPU, one_rank());
  REQUIRE(same["gradient_rms"].get<double>() == 0.0);
  REQUIRE(same["loss_relative"].get<double>() == 0.0);
  const auto mixed = check_equality(
      small_case("gnn-512-n320-tri6-bf16", {"train.precision=bf16-mixed"}), at::kCPU, one_rank());
  REQUIRE(mixed["gradient_rms"].get<double>() > 0.0);
  INFO(mixed.dump());
  REQUIRE(mixed["within"].get<bool>());
}

TEST_CASE("a step divided over ranks equals that of one", "[bench]") {
  parallel::run_as_threads(3, [](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {3, 1});
    const auto json =
        check_equality(small_case("gnn-512-n320-tri6-bf16", {"parallel.model=3"}), at::kCPU, mesh);
    if (!json["within"].get<bool>()) throw Error(json.dump());
  });
}

TEST_CASE("stages of a pipeline are refused", "[bench]") {
  REQUIRE_THROWS_AS(
      StepRun(small_case("gnn-512-n320-tri6-bf16", {"parallel.pipeline=2"}), one_rank(), at::kCPU),
      ConfigError);
}
