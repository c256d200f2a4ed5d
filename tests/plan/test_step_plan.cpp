// SPDX-License-Identifier: Apache-2.0
#include "plan/step_plan.h"

#include <cmath>

#include "core/check.h"
#include "tests/plan/published.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::plan;
using model::BlockKind;
using model::RecomputePolicy;

namespace {

Division alone(const GraphTotals& totals) {
  return {.ranks = {test::one_rank(totals)}};
}

}  // namespace

TEST_CASE("time and memory of steps are those measured on an H100 and an H200", "[plan]") {
  const Machine h200 = load_machine(test::source_folder() / "configs" / "machines" / "h200.json");
  struct Measured {
    const char* name;
    GraphTotals totals;
    RecomputePolicy mappers, processor;
    int64_t mapper_chunks;
    double step_ms, h200_ms, peak_gib;
  };
  constexpr RecomputePolicy none = RecomputePolicy::kNone;
  for (const Measured& m :
       std::vector<Measured>{{"O96", test::kO96Tri5, none, none, 1, 30.8, 26.2, 11.0},
                             {"N320 tri5", test::kN320Tri5, none, none, 1, 99.6, 85.8, 40.4},
                             {"N320 tri6", test::kN320Tri6, none, none, 1, 165.3, 143.2, 65.1},
                             {"-37gib", test::kN320Tri6, RecomputePolicy::kEmbedding,
                              RecomputePolicy::kMlp, 1, 195.1, 168.0, 35.6},
                             {"-18gib", test::kN320Tri6, RecomputePolicy::kBlock,
                              RecomputePolicy::kBlock, 4, 225.3, 193.1, 15.0}}) {
    StepInput input = test::published_step(BlockKind::kGnn, 512, m.totals);
    model::ModelOptions& o = input.network.model;
    o.encoder.recompute = o.decoder.recompute = m.mappers;
    o.processor.recompute = m.processor;
    o.encoder.chunks = o.decoder.chunks = m.mapper_chunks;
    const StepPlan plan = plan_step(input, alone(m.totals));
    INFO(m.name);
    CHECK(1e3 * plan.time.total_s() == Approx(m.step_ms).epsilon(0.05));
    CHECK(plan.memory.device() / (1 << 30) == Approx(m.peak_gib).epsilon(0.05));
    CHECK(plan.flops.executed_step >= 0.6 * plan.flops.useful_step);
    input.machine = h200;
    CHECK(1e3 * plan_step(input, alone(m.totals)).time.total_s() ==
          Approx(m.h200_ms).epsilon(0.05));
  }
}

TEST_CASE("time and memory of transformers are those measured on an H100", "[plan]") {
  struct Measured {
    BlockKind processor;
    RecomputePolicy recompute;
    int64_t chunks;
    double step_ms, peak_gib, within;
  };
  for (const Measured& m : std::vector<Measured>{
           {BlockKind::kGraphTransformer, RecomputePolicy::kNone, 1, 239.4, 50.6, 0.03},
           {BlockKind::kGraphTransformer, RecomputePolicy::kBlock, 8, 308.4, 14.4, 0.03},
           {BlockKind::kTransformer, RecomputePolicy::kNone, 1, 269.4, 48.4, 0.03}}) {
    StepInput input = test::published_step(BlockKind::kGraphTransformer, 1024, test::kN320Tri6);
    model::ModelOptions& o = input.network.model;
    o.processor.kind = m.processor;
    o.processor.window = m.processor == BlockKind::kTransformer ? 512 : 0;
    o.encoder.recompute = o.decoder.recompute = o.processor.recompute = m.recompute;
    o.encoder.chunks = 1;
    o.decoder.chunks = m.chunks;
    const StepPlan plan = plan_step(input, alone(test::kN320Tri6));
    INFO(enum_name(m.processor) << ", " << enum_name(m.recompute));
    CHECK(1e3 * plan.time.total_s() == Approx(m.step_ms).epsilon(0.2));
    CHECK(plan.memory.device() / (1 << 30) == Approx(m.peak_gib).epsilon(m.within));
  }
}

TEST_CASE("inputs of layers on the host take no memory of the card, but time", "[plan]") {
  StepInput input = test::published_step(BlockKind::kGnn, 512, test::kO1280Tri8);
  model::ModelOptions& o = input.network.model;
  o.encoder.recompute = o.decoder.recompute = o.processor.recompute = RecomputePolicy::kBlock;
  o.encoder.chunks = 4;
  o.decoder.chunks = 32;
  o.processor.edge_ranges = 8;
  const auto plan_of = [&](int64_t offload) {
    o.processor.offload = offload;
    return plan_step(input, alone(test::kO1280Tri8));
  };
  const StepPlan here = plan_of(0), some = plan_of(6), all = plan_of(16);
  const double state =
      2.0 * 512 * static_cast<double>(test::kO1280Tri8.hidden + test::kO1280Tri8.processor_edges);
  CHECK(here.memory.host_inputs == 0.0);
  CHECK(here.transfers.empty());
  CHECK(some.memory.host_inputs == Approx(6 * state));
  CHECK(all.memory.host_inputs == Approx(15 * state));  // the last one stays
  // In the backward pass one more than stay is on the card: the one that is fetched.
  CHECK(here.memory.device() - some.memory.device() >= 5 * state);
  CHECK(some.memory.processor == Approx(here.memory.processor - 6 * state));
  CHECK(some.bytes("to host") == Approx(6 * state));
  CHECK(some.bytes("from host") == Approx(6 * state));
  CHECK(some.time.compute_s == here.time.compute_s);
  CHECK(all.time.exposed_s > 0.5);
  input.accumulate_batches = 2;
  CHECK(plan_of(6).bytes("to host") == Approx(12 * state));
  CHECK(plan_of(6).memory.host_inputs == Approx(6 * state));
  input.network.gpu = false;
  CHECK(plan_of(6).memory.host_inputs == 0.0);
}

TEST_CASE("a mesh of 8 refinements at O1280 takes what was measured on an H100", "[plan]") {
  StepInput input = test::published_step(BlockKind::kGnn, 512, test::kO1280Tri8);
  input.batch_times = 0;  // added below: fields of the step alone, 202 and 89 a node
  model::ModelOptions& o = input.network.model;
  o.encoder.recompute = o.decoder.recompute = RecomputePolicy::kBlock;
  o.encoder.chunks = 8;
  o.decoder.chunks = 16;
  o.processor.recompute = RecomputePolicy::kFull;
  o.processor.chunks = 8;
  o.processor.edge_ranges = 4;
  o.processor.offload = 7;
  const StepPlan plan = plan_step(input, alone(test::kO1280Tri8));
  const double fields = 4.0 * (202 + 89) * static_cast<double>(test::kO1280Tri8.data);
  CHECK(1e3 * plan.time.total_s() == Approx(4370.0).epsilon(0.1));
  CHECK((plan.memory.device() + fields) / (1 << 30) == Approx(68.9).epsilon(0.05));
}

TEST_CASE("ranges of edges take less memory, groups of layers less of the host", "[plan]") {
  StepInput input = test::published_step(BlockKind::kGnn, 512, test::kO1280Tri8);
  model::BlockOptions& processor = input.network.model.processor;
  processor.recompute = RecomputePolicy::kBlock;
  const auto plan_of = [&](int64_t edge_ranges) {
    processor.edge_ranges = edge_ranges;
    return plan_step(input, alone(test::kO1280Tri8));
  };
  const StepPlan whole = plan_of(1), ranges = plan_of(8);
  CHECK(ranges.memory.device() < whole.memory.device());
  CHECK(ranges.flops.executed_step == Approx(whole.flops.executed_step).epsilon(0.01));
  const double blocks_s = ranges.time.compute_s;
  processor.recompute = RecomputePolicy::kFull;
  processor.chunks = 8;
  processor.offload = 7;
  const StepPlan groups = plan_of(8);
  CHECK(groups.memory.host_inputs == Approx(0.5 * 0.875 * ranges.memory.processor).epsilon(0.1));
  // The first of two layers runs once more.
  CHECK(groups.time.compute_s > blocks_s);
  CHECK(groups.time.compute_s < 1.15 * blocks_s);
}

TEST_CASE("one sample over two cards takes about as long as measured", "[plan]") {
  // Two H200: 199.6 to 107.8 ms and 56.1 to 29.2 GiB.
  StepInput input = test::published_step(BlockKind::kGnn, 512, test::kN320Tri6);
  input.layout.model = 2;
  const StepPlan one = plan_step(test::published_step(BlockKind::kGnn, 512, test::kN320Tri6),
                                 alone(test::kN320Tri6));
  RankRows half{.data = test::kN320Tri6.data / 2, .hidden = test::kN320Tri6.hidden / 2};
  half.encoder = {.edges = test::kN320Tri6.encoder_edges / 2,
                  .sources = half.data + 500,
                  .sent = 500,
                  .received = 500,
                  .peers = 1};
  half.processor = {.edges = test::kN320Tri6.processor_edges / 2,
                    .sources = half.hidden + 2000,
                    .sent = 2000,
                    .received = 2000,
                    .peers = 1};
  half.decoder = {.edges = test::kN320Tri6.decoder_edges / 2,
                  .sources = half.hidden + 200,
                  .sent = 200,
                  .received = 200,
                  .peers = 1};
  const StepPlan two = plan_step(input, Division{.ranks = {half, half}});
  CHECK(one.time.total_s() / two.time.total_s() == Approx(1.85).epsilon(0.1));
  CHECK(two.memory.device() / one.memory.device() == Approx(0.52).epsilon(0.05));
}

TEST_CASE("layouts change memory and communication as they should", "[plan]") {
  const Division division = alone(test::kO96Tri5);
  const auto plan_of = [&](const Layout& layout) {
    StepInput input = test::published_step(BlockKind::kGraphTransformer, 1024, test::kO96Tri5);
    input.layout = layout;
    return plan_step(input, division);
  };
  const StepPlan plain = plan_of({.data = 8});
  const double weights = plain.memory.parameters;
  REQUIRE(plain.memory.gradients == weights);
  REQUIRE(plain.memory.optimizer == 2.0 * weights);
  REQUIRE(plain.bytes("all-reduce") == Approx(weights + 32.0));
  SECTION("states are shared out stage by stage") {
    const StepPlan optimizer = plan_of({.data = 8, .sharding = Sharding::kOptimizer});
    REQUIRE(optimizer.memory.optimizer == Approx(weights / 4));
    REQUIRE(optimizer.memory.gradients == weights);
    REQUIRE(optimizer.bytes("all-gather") == Approx(weights * 7 / 8));
    const StepPlan gradients = plan_of({.data = 8, .sharding = Sharding::kGradients});
    REQUIRE(gradients.memory.gradients == Approx(weights / 8));
    REQUIRE(gradients.bytes("reduce-scatter") == Approx(weights * 7 / 8));
    const StepPlan parameters = plan_of({.data = 8, .sharding = Sharding::kParameters});
    REQUIRE(parameters.memory.parameters == Approx(weights / 8));
    REQUIRE(parameters.bytes("all-gather") == Approx(2 * weights * 7 / 8));
    const StepPlan hybrid = plan_of({.data = 16, .sharding = Sharding::kHybrid});
    REQUIRE(hybrid.memory.parameters == Approx(weights / 8));
    REQUIRE(hybrid.bytes("all-reduce") == Approx(weights / 8 + 32.0));
  }
  SECTION("gradients are compressed, or travel in buckets during the backward pass") {
    const StepPlan half = plan_of({.data = 8, .compression = Compression::kBf16});
    REQUIRE(half.bytes("all-reduce") == Approx(weights / 2 + 32.0));
    const StepPlan low_rank = plan_of({.data = 8, .compression = Compression::kPowerSgd});
    REQUIRE(low_rank.bytes("all-reduce") < 0.1 * weights);
    const StepPlan buckets = plan_of({.data = 8, .bucket_mb = 64.0});
    REQUIRE(buckets.time.exposed_s < 0.2 * plain.time.exposed_s);
    REQUIRE(buckets.calls("all-reduce") == std::ceil(weights / 64e6) + 2);
    // On one host in two pieces, but for what is compressed or shared out.
    const auto calls = [&](Layout layout, const char* operation = "all-reduce") {
      layout.bucket_mb = 64.0;
      layout.first_piece = 5.0 / 6.0;
      return plan_of(layout).calls(operation);
    };
    REQUIRE(calls({.data = 8}) == 2 + 2);
    REQUIRE(plan_of({.data = 8, .first_piece = 5.0 / 6.0}).time.exposed_s <
            0.4 * plain.time.exposed_s);
    REQUIRE(calls({.data = 16}) == std::ceil(weights / 64e6) + 2);
    REQUIRE(calls({.data = 8, .compression = Compression::kBf16}) == 1 + 2);
    REQUIRE(calls({.data = 8, .sharding = Sharding::kGradients}, "reduce-scatter") ==
            std::ceil(weights / 64e6));
  }
  SECTION("products are shared, or layers") {
    const StepPlan tensor = plan_of({.tensor = 4});
    REQUIRE(tensor.memory.parameters < 0.35 * weights);
    REQUIRE(tensor.time.compute_s < 0.55 * plain.time.compute_s);  // encoder and decoder are whole
    REQUIRE(tensor.bytes("all-reduce") > 0.0);
    const StepPlan pipeline = plan_of({.pipeline = 4});
    REQUIRE(pipeline.memory.parameters < 0.4 * weights);
    REQUIRE(pipeline.time.bubble_s == Approx(3.0 * pipeline.time.compute_s));  // one batch only
    REQUIRE(pipeline.calls("send") == 2);
  }
  SECTION("what is impossible is said") {
    REQUIRE_THROWS_WITH(plan_of({.tensor = 17}), ContainsSubstring("parallel.tensor"));
    REQUIRE_THROWS_WITH(plan_of({.pipeline = 17}), ContainsSubstring("parallel.pipeline"));
    StepInput input = test::published_step(BlockKind::kGnn, 512, test::kO96Tri5);
    const auto refused = [&](const char* path) {
      REQUIRE_THROWS_WITH(plan_step(input, division), ContainsSubstring(path));
    };
    input.layout.model = 2;
    input.network.model.residual.kind = model::ResidualKind::kTruncated;
    refused("model.residual.kind");
    input.network.model.residual = {.kind = model::ResidualKind::kSpectralOrnstein,
                                    .truncate = true};
    refused("model.residual.truncate");
    input.layout = {.pipeline = 2};
    input.network.model.hierarchy.meshes = {"hidden", "coarse"};
    refused("parallel.pipeline");
    input.network.model.hierarchy.meshes = {};
    input.network.model.processor.kind = BlockKind::kNone;
    refused("parallel.pipeline");
  }
}

TEST_CASE("stages keep the batches that are in flight, and wait for the first and last", "[plan]") {
  const Division division = alone(test::kO96Tri5);
  StepInput input = test::published_step(BlockKind::kGraphTransformer, 1024, test::kO96Tri5);
  input.layout.pipeline = 4;
  const StepPlan one = plan_step(input, division);
  const auto of_batches = [&](int64_t batches) {
    input.accumulate_batches = batches;
    return plan_step(input, division);
  };
  // The first of four stages has four batches in flight at most, and most memory then.
  const double three = of_batches(3).memory.activations();
  const StepPlan four = of_batches(4), eight = of_batches(8);
  REQUIRE(four.memory.activations() == Approx(4.0 / 3.0 * three));
  REQUIRE(eight.memory.activations() == four.memory.activations());
  REQUIRE(eight.time.bubble_s / (eight.time.bubble_s + eight.time.compute_s) ==
          Approx(3.0 / (8.0 + 3.0)));
  REQUIRE(eight.bytes("send") == Approx(8 * one.bytes("send")));
  // Rows of the hidden mesh and what its edges have learnt, forward and back.
  const NetworkInput& network = input.network;
  const double rows = static_cast<double>(network.totals.hidden * 1024 * network.types.activation);
  REQUIRE(one.bytes("send") > 2 * rows);
  input.rollout = 2;  // stages meet twice: nothing overlaps
  const StepPlan rollout = plan_step(input, division);
  REQUIRE(rollout.memory.activations() == Approx(2 * one.memory.activations()));
  REQUIRE(rollout.time.bubble_s == Approx(3 * rollout.time.compute_s));
  input.rollout = 1;
  input.stage_layers = {1, 5, 5, 5};
  REQUIRE(plan_step(input, division).time.compute_s > eight.time.compute_s);
}

TEST_CASE("a step of several batches, forecast steps and recomputed ones", "[plan]") {
  const Division division = alone(test::kO96Tri5);
  StepInput input = test::published_step(BlockKind::kGnn, 512, test::kO96Tri5);
  const StepPlan one = plan_step(input, division);
  input.rollout = 3;
  const StepPlan kept = plan_step(input, division);
  REQUIRE(kept.memory.activations() == Approx(3 * one.memory.activations()));
  REQUIRE(kept.time.compute_s == Approx(3 * one.time.compute_s));
  input.recompute_steps = true;
  const StepPlan again = plan_step(input, division);
  REQUIRE(again.memory.activations() == Approx(one.memory.activations()));
  REQUIRE(again.flops.executed_step == Approx(4.0 / 3.0 * kept.flops.executed_step));
  input.accumulate_batches = 2;
  REQUIRE(plan_step(input, division).time.compute_s == Approx(2 * again.time.compute_s));
  REQUIRE(plan_step(input, division).samples == 2);
}
