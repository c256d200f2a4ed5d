// SPDX-License-Identifier: Apache-2.0
// Calls and bytes of a real step, counted, against the plan of it: on every rank, by operation.
#include <ATen/ATen.h>

#include <functional>

#include "core/check.h"
#include "model/network/encoder_processor_decoder.h"
#include "parallel/backends/counting_communicator.h"
#include "parallel/launch/runtime.h"
#include "parallel/process_mesh.h"
#include "plan/step_plan.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using model::BlockKind;
using model::RecomputePolicy;
using parallel::Operation;

namespace {

parallel::Runtime& runtime() {
  static parallel::Runtime runtime;
  return runtime;
}

graph::Graph toy_graph() {
  graph::Graph graph = test::random_graph({151, 47, 240, 280, 450}, 5);
  test::add_mesh(graph, "hidden", "middle", 19);
  test::add_mesh(graph, "middle", "deep", 7);
  return graph;
}

struct Case {
  BlockKind kind;
  RecomputePolicy recompute;
  graph::SourceRows mapper_sources;
  int64_t copies;
  model::AttentionSharing attention = model::AttentionSharing::kAuto;
  graph::HiddenOrder order = graph::HiddenOrder::kAuto;
  std::function<void(model::ModelOptions&)> change = [](model::ModelOptions&) {};
};

model::ModelOptions options_of(const Case& c) {
  model::ModelOptions options;
  options.channels = 16;
  options.layers = 3;
  options.encoder.kind = options.processor.kind = options.decoder.kind = c.kind;
  options.encoder.heads = options.processor.heads = options.decoder.heads = 4;
  if (c.kind == BlockKind::kTransformer) options.processor.window = 3;
  for (model::BlockOptions* block : {&options.hierarchy.upscale, &options.hierarchy.downscale}) {
    block->kind = c.kind;
    block->heads = 4;
  }
  options.set_recompute(c.recompute);
  c.change(options);
  return options;
}

// Forward pass, loss and backward pass of one sample over all ranks.
void run_step(const Case& c, parallel::Communicator& world) {
  const graph::Graph graph = toy_graph();
  const model::ModelOptions options = options_of(c);
  const graph::GraphPartition partition =
      graph::make_partition(graph, world.size(), c.order, options.layers);
  const model::Shard shard{partition, world, c.mapper_sources, c.attention};
  model::ParameterSet parameters(at::kFloat, 3);
  const model::EncoderProcessorDecoder network(
      parameters, options,
      model::GraphTensors::create(graph, options.edge_attributes, at::kFloat,
                                  world.size() > 1 ? &shard : nullptr),
      test::toy_layout());
  parameters.flatten(at::kCPU);
  const int64_t own = partition.data.num_owned(world.rank());
  const at::Tensor x = test::random_tensor({c.copies, 2, 1, own, 6}, 1).to(at::kFloat);
  const at::Tensor partial = network.forward(x).square().sum(at::kDouble);
  (world.size() > 1 ? parallel::total_over_ranks(partial, world) : partial).backward();
  if (world.size() > 1) world.all_reduce(parameters.flat_gradients(), parallel::Reduction::kSum);
  for (const double number : {32.0, 24.0}) {  // as the training loop agrees on a step
    if (world.size() > 1)
      parallel::sum_over(world, std::vector<double>(static_cast<size_t>(number / 8.0)));
  }
}

// The plan of this rank alone, as if all were like it.
plan::StepPlan plan_of(const Case& c, int ranks, int rank) {
  const graph::Graph graph = toy_graph();
  const model::ModelOptions options = options_of(c);
  plan::StepInput input{.network = {.model = options,
                                    .totals = plan::GraphTotals::of(graph, options.meshes()),
                                    .prognostic = 4,
                                    .forcing = 2,
                                    .diagnostic = 1,
                                    .copies = c.copies}};
  input.layout.model = ranks;
  input.mapper_sources = c.mapper_sources;
  input.attention = c.attention;
  input.hidden_order = c.order;
  plan::Division division = plan::divide(input, graph);
  const plan::RankRows own = division.ranks[static_cast<size_t>(rank)];
  for (plan::RankRows& any : division.ranks)
    any = own;
  return plan::plan_step(input, division);
}

void require_planned(const Case& c) {
  parallel::Communicator& world = runtime().world();
  const auto count = std::make_shared<parallel::CommunicationCount>();
  parallel::CountingCommunicator counting(world, count);
  run_step(c, counting);
  const plan::StepPlan plan = plan_of(c, world.size(), world.rank());
  INFO(enum_name(c.kind) << ", recompute " << enum_name(c.recompute) << ", sources "
                         << enum_name(c.mapper_sources) << ", attention by "
                         << enum_name(c.attention) << ", rank " << world.rank() << "\n"
                         << count->table());
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kBroadcast, Operation::kSend}) {
    INFO(enum_name(operation));
    const parallel::OperationCount real = count->of(operation);
    CHECK(static_cast<double>(real.calls) == plan.calls(enum_name(operation)));
    CHECK(static_cast<double>(real.bytes) ==
          Approx(plan.bytes(enum_name(operation))).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("a step sends what the plan says, call by call and byte by byte", "[plan][parallel]") {
  for (const RecomputePolicy recompute : {RecomputePolicy::kNone, RecomputePolicy::kMlp,
                                          RecomputePolicy::kBlock, RecomputePolicy::kFull}) {
    const int64_t copies = recompute == RecomputePolicy::kNone ? 2 : 1;
    for (const BlockKind kind : {BlockKind::kGnn, BlockKind::kGraphTransformer}) {
      for (const auto sources : {graph::SourceRows::kHalo, graph::SourceRows::kAll})
        require_planned({kind, recompute, sources, copies});
    }
    for (const auto attention :
         {model::AttentionSharing::kHeads, model::AttentionSharing::kSequence})
      require_planned({BlockKind::kTransformer, recompute, graph::SourceRows::kHalo, copies,
                       attention, graph::HiddenOrder::kMesh});
  }
}

TEST_CASE("hierarchies, noise and learnt residuals send what the plan says", "[plan][parallel]") {
  for (const RecomputePolicy recompute : {RecomputePolicy::kNone, RecomputePolicy::kBlock}) {
    for (const BlockKind kind :
         {BlockKind::kGnn, BlockKind::kGraphTransformer, BlockKind::kTransformer}) {
      for (const bool levels : {false, true}) {
        for (const auto sources : {graph::SourceRows::kHalo, graph::SourceRows::kAll}) {
          Case c{kind, recompute, sources, 2};
          c.order = graph::HiddenOrder::kMesh;
          c.change = [levels](model::ModelOptions& o) {
            o.hierarchy.meshes = {"hidden", "middle", "deep"};
            o.hierarchy.level_processing = levels;
          };
          require_planned(c);
        }
      }
    }
    Case c{BlockKind::kGraphTransformer, recompute, graph::SourceRows::kHalo, 2};
    c.change = [](model::ModelOptions& o) {
      o.ensemble.noise = model::NoiseKind::kConditioning;
      o.residual.kind = model::ResidualKind::kScalarOrnstein;
    };
    require_planned(c);
  }
}

TEST_CASE("groups that are split off count with the rest", "[plan][parallel]") {
  const auto count = std::make_shared<parallel::CommunicationCount>();
  parallel::CountingCommunicator counting(runtime().world(), count);
  const auto group = counting.split(0);
  const at::Tensor numbers = at::ones({3}, at::kDouble);
  group->all_reduce(numbers, parallel::Reduction::kSum);
  counting.all_reduce(numbers, parallel::Reduction::kMax);
  REQUIRE(count->of(Operation::kAllReduce).calls == 2);
  REQUIRE(count->of(Operation::kAllReduce).bytes == 48);
  REQUIRE_THAT(count->table(), ContainsSubstring("all-reduce"));
  REQUIRE(group->size() == runtime().size());
}
