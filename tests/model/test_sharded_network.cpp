// SPDX-License-Identifier: Apache-2.0
// One sample over many ranks gives the numbers of one rank, for every family: outputs, gradients of
// all parameters. Ranks are threads and, under mpirun, processes.
#include <ATen/ATen.h>

#include "core/check.h"
#include "model/encoder_processor_decoder.h"
#include "parallel/comm_virtual.h"
#include "parallel/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using namespace aifs::model;
using graph::HiddenOrder;
using graph::SourceRows;
using test::max_difference;
using test::random_tensor;
using test::toy_layout;

namespace {

constexpr int64_t kData = 37, kHidden = 11;  // primes: no number of ranks divides them
constexpr int64_t kMiddle = 5, kDeep = 2;    // coarser meshes
constexpr int64_t kNoiseNodes = 7, kNoiseChannels = 3, kMembers = 2;
constexpr double kRounding = 1e-12;

graph::Graph toy_graph() {
  graph::Graph graph = test::random_graph({kData, kHidden, 60, 66, 111}, 5);
  graph::Graph coarse = test::random_graph({kMiddle, kDeep, 9, 8, 9}, 6);
  coarse.node_sets[0].name = "middle";
  coarse.node_sets[1].name = "deep";
  for (const graph::NodeSet& nodes : coarse.node_sets)
    graph.node_sets.push_back(nodes);
  for (const auto& [from, n, to, m] :
       std::vector<std::tuple<const char*, int64_t, const char*, int64_t>>{
           {"hidden", kHidden, "middle", kMiddle},
           {"middle", kMiddle, "hidden", kHidden},
           {"middle", kMiddle, "middle", kMiddle},
           {"middle", kMiddle, "deep", kDeep},
           {"deep", kDeep, "middle", kMiddle},
           {"deep", kDeep, "deep", kDeep}}) {
    graph.edge_sets.push_back(
        test::random_edges(from, n, to, m, 4 * m, static_cast<uint64_t>(n + 20 * m)));
  }
  return graph;
}

struct Family {
  std::string name;
  std::function<void(ModelOptions&)> change;
  bool projected_noise = false;

  NetworkPlan plan() const {
    ModelOptions options;
    options.channels = 12;
    options.layers = 2;
    for (BlockOptions* block :
         {&options.encoder, &options.processor, static_cast<BlockOptions*>(&options.decoder)})
      block->heads = 3;  // fewer than ranks, and not a multiple of them
    change(options);
    NetworkPlan plan = NetworkPlan::single(options, toy_layout());
    if (projected_noise) {
      const at::Tensor to = at::arange(3 * kHidden) % kHidden,
                       from = at::arange(3 * kHidden) % kNoiseNodes;
      plan.noise_projection =
          SparseMatrix::create(to, from, random_tensor({3 * kHidden}, 4), kHidden, kNoiseNodes);
    }
    return plan;
  }
};

void kinds(ModelOptions& options, BlockKind mappers, BlockKind processor) {
  options.encoder.kind = options.decoder.kind = mappers;
  options.processor.kind = processor;
}

void noise(ModelOptions& options) {
  options.ensemble.members = kMembers;
  options.ensemble.noise = NoiseKind::kConditioning;
  options.ensemble.noise_channels = kNoiseChannels;
}

void levels(ModelOptions& options, std::vector<std::string> meshes, BlockKind kind) {
  kinds(options, BlockKind::kGraphTransformer,
        kind == BlockKind::kGnn ? BlockKind::kGnn : BlockKind::kTransformer);
  options.hierarchy.meshes = std::move(meshes);
  options.hierarchy.level_processing = true;
  for (BlockOptions* block : {&options.hierarchy.upscale, &options.hierarchy.downscale}) {
    block->kind = kind;
    block->heads = 3;
  }
}

const std::vector<Family> kFamilies{
    {"gnn", [](ModelOptions&) {}},
    {"gnn in chunks, recomputed",
     [](ModelOptions& o) {
       o.set_recompute(RecomputePolicy::kBlock);
       o.encoder.chunks = o.decoder.chunks = 3;
       o.processor.edge_ranges = 2;
     }},
    {"graph transformer in chunks",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
       o.encoder.chunks = o.decoder.chunks = 3;
       o.processor.qk_norm = true;
     }},
    {"point-wise", [](ModelOptions& o) { kinds(o, BlockKind::kPointWise, BlockKind::kPointWise); }},
    {"transformer between point-wise maps",
     [](ModelOptions& o) { kinds(o, BlockKind::kPointWise, BlockKind::kTransformer); }},
    {"transformer, all nodes",
     [](ModelOptions& o) { kinds(o, BlockKind::kGraphTransformer, BlockKind::kTransformer); }},
    {"transformer, window, recomputed",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
       o.encoder.window = 6;
       o.processor.window = 1;
       o.decoder.window = 4;
       o.processor.qk_norm = o.encoder.qk_norm = true;
       o.set_recompute(RecomputePolicy::kFull);
     }},
    {"transformer, window of as many as there are keys",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
       o.encoder.window = o.processor.window = o.decoder.window = -1;
     }},
    {"transformer as flash-attention has it",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
       for (BlockOptions* block :
            {&o.encoder, &o.processor, static_cast<BlockOptions*>(&o.decoder)}) {
         block->attention = AttentionBackend::kFlash;
         block->alibi = true;
         block->softcap = 2.0;
       }
       o.processor.window = 2;
       o.encoder.rotary = o.decoder.rotary = true;
       o.decoder.window = 5;
     }},
    {"two levels of gnn",
     [](ModelOptions& o) {
       levels(o, {"hidden", "middle"}, BlockKind::kGnn);
     }},
    {"three levels of graph transformer",
     [](ModelOptions& o) {
       levels(o, {"hidden", "middle", "deep"}, BlockKind::kGraphTransformer);
     }},
    {"three levels of transformer",
     [](ModelOptions& o) {
       levels(o, {"hidden", "middle", "deep"}, BlockKind::kTransformer);
       o.processor.window = 1;
     }},
    {"ensemble of graph transformer",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
       noise(o);
     }},
    {"ensemble of transformer, projected noise",
     [](ModelOptions& o) {
       kinds(o, BlockKind::kGraphTransformer, BlockKind::kTransformer);
       noise(o);
     },
     /*projected_noise=*/true},
    {"truncated residual",
     [](ModelOptions& o) {
       o.residual.kind = ResidualKind::kTruncated;
       o.residual.truncation_grid = "tri0";
     }},
    {"ornstein residual", [](ModelOptions& o) { o.residual.kind = ResidualKind::kScalarOrnstein; }},
};

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  EncoderProcessorDecoder network;

  Toy(const Family& family, const Shard* shard = nullptr)
      : network(
            parameters, family.plan(),
            GraphTensors::create(toy_graph(), ModelOptions().edge_attributes, at::kDouble, shard)) {
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (p.trainable) p.tensor.detach().add_(random_tensor(p.tensor.sizes(), ++seed), 0.1);
    }
  }

  // Noise is drawn for the whole set.
  at::Tensor forward(const Family& family, const at::Tensor& x) const {
    StepContext context;
    const int64_t nodes = family.projected_noise ? kNoiseNodes : kHidden;
    if (network.has_noise()) context.noise = random_tensor({2, kMembers, nodes, kNoiseChannels}, 8);
    return network.forward(x, context);
  }
};

// Output and gradient of sum(weights * output^2) on one rank.
struct Whole {
  at::Tensor x = random_tensor({2, 2, kMembers, kData, 6}, 1),
             weights = random_tensor({kData, 1}, 2);
  at::Tensor y, gradients;
  explicit Whole(const Family& family) {
    const Toy toy(family);
    y = toy.forward(family, x);
    (y.square() * weights).sum().backward();
    y = y.detach();
    gradients = toy.parameters.flat_gradients();
  }
};

struct Layout {
  HiddenOrder order;
  SourceRows rows;
  AttentionSharing attention;
};

void compare_rank(const Family& family, const Layout& layout, const Whole& whole,
                  parallel::Communicator& group) {
  const graph::GraphPartition partition =
      graph::make_partition(toy_graph(), group.size(), layout.order, 2);
  const Shard shard{partition, group, layout.rows, layout.attention};
  const Toy toy(family, &shard);
  const at::Tensor own = at::tensor(partition.data.owned(group.rank()), at::kLong);
  const at::Tensor y = toy.forward(family, whole.x.index_select(3, own));
  (y.square() * whole.weights.index_select(0, own)).sum().backward();
  const at::Tensor gradients = toy.parameters.flat_gradients();
  group.all_reduce(gradients, parallel::Reduction::kSum);
  const double size = whole.y.abs().max().item<double>();
  if (own.numel() > 0 && max_difference(y, whole.y.index_select(3, own)) > kRounding * size)
    throw Error(concat("rank ", group.rank(), ": another output"));
  const double scale = whole.gradients.abs().max().item<double>();
  if (max_difference(gradients, whole.gradients) > kRounding * scale)
    throw Error(concat("rank ", group.rank(), ": another gradient"));
}

}  // namespace

TEST_CASE("a sharded sample gives the outputs and gradients of one rank", "[model][parallel]") {
  parallel::Runtime runtime(60.0);
  const std::vector<Layout> layouts{
      {HiddenOrder::kHilbert, SourceRows::kHalo, AttentionSharing::kAuto},
      {HiddenOrder::kLatitude, SourceRows::kAll, AttentionSharing::kHeads},
      {HiddenOrder::kMesh, SourceRows::kHalo, AttentionSharing::kSequence}};
  for (const Family& family : kFamilies) {
    const Whole whole(family);
    for (const Layout& layout : layouts) {
      INFO(family.name << ", order " << enum_name(layout.order));
      const auto compare = [&](parallel::Communicator& group) {
        compare_rank(family, layout, whole, group);
      };
      REQUIRE_NOTHROW(compare(runtime.world()));
      if (runtime.size() > 1) continue;
      for (const int ranks : {2, 3, 4, 13}) {  // 13: ranks without hidden nodes
        INFO(ranks << " threads");
        REQUIRE_NOTHROW(parallel::run_as_threads(ranks, compare));
      }
    }
  }
}
