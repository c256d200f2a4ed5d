// SPDX-License-Identifier: Apache-2.0
#include "bench/step.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::bench;

namespace {

const parallel::ProcessMesh& one_rank() {
  static const parallel::ProcessMesh mesh;
  return mesh;
}

}  // namespace

TEST_CASE("a case is read from its name", "[bench]") {
  const StepCase c = StepCase::parse("gnn-512-n320-tri6-bf16");
  REQUIRE(c.channels == 512);
  REQUIRE(c.grid == "n320");
  REQUIRE(c.refinement == 6);
  REQUIRE(c.precision == train::Precision::kBf16Mixed);
  REQUIRE(StepCase::parse("gnn-8-o8-tri1-tf32").precision == train::Precision::kTf32);
  const StepCase transformer = StepCase::parse("transformer-64-o8-tri1-bf16-16gib");
  REQUIRE(transformer.mappers == model::BlockKind::kGraphTransformer);
  REQUIRE(transformer.processor == model::BlockKind::kTransformer);
  REQUIRE(transformer.recompute_processor == model::RecomputePolicy::kBlock);
  REQUIRE_THROWS_AS(StepCase::parse("gnn-8-o8-tri1-tf32-3gib"), ConfigError);
  for (const char* name :
       {"", "gnn", "gnn-512-n320-tri6", "gnn-512-n320-tri6-fp16", "x-1-o8-tri1-fp32"})
    REQUIRE_THROWS_AS(StepCase::parse(name), ConfigError);
}

TEST_CASE("a case has the variables and the model of the published measurements", "[bench]") {
  const model::FieldLayout layout = step_layout();
  REQUIRE(layout.num_inputs == 101);
  REQUIRE(layout.num_outputs() == 89);
  REQUIRE(layout.input_prognostic.size() == 88);
  const data::VariableTable variables = step_variables();
  REQUIRE(variables.num_inputs() == layout.num_inputs);
  REQUIRE(variables.input_prognostic() == layout.input_prognostic);
  REQUIRE(variables.output_prognostic() == layout.output_prognostic);
  REQUIRE(variables.num_outputs() == layout.num_outputs());
  // Anemoi has 48.4 million parameters there.
  const StepCase c = StepCase::parse("gnn-512-o96-tri5-fp32");
  const graph::Graph graph = step_graph(c, "");
  const StepNetwork net(c, graph, at::kCPU, StepShares(one_rank(), c, graph));
  REQUIRE(static_cast<double>(net.parameters.num_trainable()) == Approx(48.4e6).epsilon(1e-3));
}

TEST_CASE("every kind of network and every memory setting has the same gradients", "[bench]") {
  for (const char* name :
       {"gnn-16-o8-tri1-fp32-37gib", "gnn-16-o8-tri1-fp32-18gib", "gt-64-o8-tri1-fp32",
        "gt-64-o8-tri1-fp32-16gib", "transformer-64-o8-tri1-fp32-16gib"}) {
    const auto json = check_equality(StepCase::parse(name), at::kCPU, one_rank());
    INFO(json.dump());
    REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
  }
}

TEST_CASE("layers in ranges of edges, inputs on the host: the same gradients", "[bench]") {
  for (const auto policy : {model::RecomputePolicy::kBlock, model::RecomputePolicy::kFull}) {
    for (const int64_t rollout : {1, 2}) {
      StepCase c = StepCase::parse("gnn-16-o8-tri1-fp32-18gib");
      c.layers = 4;
      c.recompute_processor = policy;
      c.groups = 2;
      c.edge_ranges = 3;
      c.offload = 1;
      c.rollout = rollout;
      const auto json = check_equality(c, at::kCPU, one_rank());
      INFO(json.dump());
      REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
    }
  }
}

TEST_CASE("a forecast whose steps run again has the gradients of one that keeps them", "[bench]") {
  for (const char* name : {"gnn-16-o8-tri1-fp32", "gt-64-o8-tri1-fp32-16gib"}) {
    StepCase forecast = StepCase::parse(name);
    forecast.layers = 2;
    forecast.rollout = 3;
    const auto json = check_equality(forecast, at::kCPU, one_rank());
    INFO(json.dump());
    REQUIRE(json["gradient_rms"].get<double>() <= 1e-5);
  }
}

TEST_CASE("steps are timed, and lower the loss", "[bench]") {
  StepBenchOptions options{.mesh = one_rank(), .graph_cache = "", .trace = ""};
  options.warm_up = 1;
  options.steps = 3;
  const auto json = time_steps(StepCase::parse("gnn-16-o8-tri1-fp32"), options);
  REQUIRE(json["step_ms"].get<double>() > 0.0);
  REQUIRE(json["last_loss"].get<double>() < json["first_loss"].get<double>());
  REQUIRE(json["nodes"][0] == 544);
}

TEST_CASE("forecasts are timed, and lower the loss", "[bench]") {
  StepBenchOptions options{.mesh = one_rank(), .graph_cache = "", .trace = ""};
  options.warm_up = 1;
  options.steps = 2;
  StepCase forecast = StepCase::parse("gnn-16-o8-tri1-fp32");
  forecast.rollout = 2;
  const auto json = time_steps(forecast, options);
  REQUIRE(json["rollout"] == 2);
  REQUIRE(json["last_loss"].get<double>() < json["first_loss"].get<double>());
}

TEST_CASE("fp32 on the CPU equals itself, bf16-mixed is within its bounds", "[bench]") {
  const auto same = check_equality(StepCase::parse("gnn-16-o8-tri1-fp32"), at::kCPU, one_rank());
  REQUIRE(same["gradient_rms"].get<double>() == 0.0);
  REQUIRE(same["loss_relative"].get<double>() == 0.0);
  const auto mixed = check_equality(StepCase::parse("gnn-16-o8-tri1-bf16"), at::kCPU, one_rank());
  REQUIRE(mixed["gradient_rms"].get<double>() > 0.0);
  INFO(mixed.dump());
  REQUIRE(mixed["within"].get<bool>());
}

TEST_CASE("a step divided over ranks equals that of one", "[bench]") {
  parallel::run_as_threads(3, [](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {3, 1});
    const auto json = check_equality(StepCase::parse("gnn-16-o8-tri1-fp32"), at::kCPU, mesh);
    if (!json["within"].get<bool>()) throw Error(json.dump());
  });
}
