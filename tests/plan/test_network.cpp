// SPDX-License-Identifier: Apache-2.0
// Parameters, kept activations and arithmetic against the real network and against published
// figures.
#include "plan/network.h"

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/check.h"
#include "graph/builder.h"
#include "graph/nodes/tri_kinds.h"
#include "model/network/encoder_processor_decoder.h"
#include "parallel/backends/comm_virtual.h"
#include "plan/step_plan.h"
#include "tests/plan/published.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::plan;

namespace {

// Counts the bytes of tensors that are alive.
class CountingAllocator : public c10::Allocator {
 public:
  static CountingAllocator& instance() {
    static CountingAllocator allocator;
    return allocator;
  }
  // The size of a block stands before it.
  c10::DataPtr allocate(size_t bytes) override {
    char* block =
        static_cast<char*>(std::aligned_alloc(kHead, (bytes + 2 * kHead) / kHead * kHead));
    std::memcpy(block, &bytes, sizeof bytes);
    live_ += static_cast<int64_t>(bytes);
    peak_ = std::max(peak_.load(), live_.load());  // one thread allocates at a time here
    return {block + kHead, block + kHead, &release, c10::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  int64_t live() const { return live_; }
  int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = live_.load(); }

 private:
  static constexpr size_t kHead = 64;
  static void release(void* data) {
    char* block = static_cast<char*>(data) - kHead;
    size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof bytes);
    instance().live_ -= static_cast<int64_t>(bytes);
    std::free(block);
  }
  std::atomic<int64_t> live_ = 0, peak_ = 0;
};

// Tensors of the CPU are counted while this lives.
class Counted {
 public:
  Counted() : before_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(&CountingAllocator::instance(), /*priority=*/1);
  }
  ~Counted() { c10::SetCPUAllocator(before_, 1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  c10::Allocator* before_;
};

constexpr test::GraphSizes kSizes{600, 150, 900, 1200, 1800};

model::FieldLayout layout() {
  model::FieldLayout layout;
  layout.num_inputs = 10;
  layout.input_names = {"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"};
  for (int64_t v = 0; v < 8; ++v) {
    layout.outputs.names.push_back(concat("v", v));
    layout.input_prognostic.push_back(v);
    layout.output_prognostic.push_back(v);
  }
  layout.outputs.names.emplace_back("diagnostic");
  return layout;
}

NetworkInput input_of(const model::ModelOptions& options, const graph::Graph& graph,
                      int64_t copies) {
  NetworkInput input{.model = options,
                     .totals = GraphTotals::of(graph, options.meshes()),
                     .prognostic = 8,
                     .forcing = 2,
                     .diagnostic = 1,
                     .copies = copies};
  input.measure_truncation(graph);
  return input;
}

RankRows whole(const graph::Graph& graph, const std::vector<std::string>& meshes = {"hidden"}) {
  return divide(graph, {.ranks = 1, .meshes = meshes}).ranks[0];
}

// With coarser meshes "middle" and "deep".
graph::Graph three_meshes() {
  graph::Graph graph = test::random_graph(kSizes, 4);
  test::add_mesh(graph, "hidden", "middle", 60);
  test::add_mesh(graph, "middle", "deep", 20);
  return graph;
}

// Bytes that a forward pass and a squared error leave behind for the backward pass, and the most
// there are in both passes.
struct Measured {
  double saved = 0.0, peak = 0.0;
  int64_t parameters = 0, flat_elements = 0;
};
Measured measure(const model::ModelOptions& options, const graph::Graph& graph, int64_t copies,
                 at::ScalarType activations) {
  model::ParameterSet parameters(at::kFloat, 1, activations);
  const model::EncoderProcessorDecoder network(
      parameters, options, model::GraphTensors::create(graph, options.edge_attributes, at::kFloat),
      layout());
  parameters.flatten(at::kCPU);
  const int64_t cells = graph.nodes("data").num_nodes();
  const at::Tensor x = test::random_tensor({copies, 2, 1, cells, 10}, 1).to(at::kFloat);
  const at::Tensor truth = test::random_tensor({copies, 1, 1, cells, 9}, 2).to(at::kFloat);
  network.forward(x);  // indices of copies are made once and kept
  const Counted counted;
  const int64_t before = CountingAllocator::instance().live();
  CountingAllocator::instance().reset_peak();
  const at::Tensor loss = (network.forward(x) - truth).square().sum();
  const int64_t kept = CountingAllocator::instance().live() - before;
  loss.backward();
  const int64_t peak = CountingAllocator::instance().peak() - before;
  return {static_cast<double>(kept), static_cast<double>(peak), parameters.num_trainable(),
          parameters.flat_values().numel()};
}

// The flat elements of the first of some ranks, and what a forward pass leaves behind on each in
// the mean. Ranks have slices of layers, or divide the nodes and attend in this way.
Measured measure_ranks(const model::ModelOptions& options, const graph::Graph& graph, int ranks,
                       std::optional<model::AttentionSharing> attention) {
  const graph::GraphPartition partition =
      graph::make_partition(graph, ranks, graph::HiddenOrder::kMesh, options.layers);
  Measured measured;
  const Counted counted;
  parallel::run_as_threads(ranks, [&](parallel::Communicator& group) {
    model::ParameterSet parameters(at::kFloat, 1);
    if (!attention) parameters.slice_over(group);
    const model::Shard shard{partition, group, graph::SourceRows::kHalo,
                             attention.value_or(model::AttentionSharing::kAuto)};
    const model::EncoderProcessorDecoder network(
        parameters, options,
        model::GraphTensors::create(graph, options.edge_attributes, at::kFloat,
                                    attention ? &shard : nullptr),
        layout());
    parameters.flatten(at::kCPU);
    const int64_t cells = attention ? partition.data.num_owned(group.rank()) : kSizes.data;
    const at::Tensor x = test::random_tensor({1, 2, 1, cells, 10}, 1).to(at::kFloat);
    network.forward(x);
    group.barrier();
    const int64_t before = CountingAllocator::instance().live();
    group.barrier();
    const at::Tensor loss = network.forward(x).square().sum();
    group.barrier();
    if (group.rank() == 0) {
      measured.saved = static_cast<double>(CountingAllocator::instance().live() - before) / ranks;
      measured.flat_elements = parameters.flat_size();
    }
    group.barrier();
  });
  return measured;
}

model::ModelOptions options_of(model::BlockKind mapper, model::BlockKind processor) {
  model::ModelOptions options;
  options.channels = 64;
  options.layers = 3;
  options.encoder.kind = options.decoder.kind = mapper;
  options.processor.kind = processor;
  for (model::BlockOptions* block :
       {&options.encoder, &options.processor, static_cast<model::BlockOptions*>(&options.decoder)})
    block->heads = 4;
  return options;
}

void require_close(const model::ModelOptions& options, int64_t copies,
                   at::ScalarType activations = at::kFloat,
                   const graph::Graph& graph = test::random_graph(kSizes, 4)) {
  NetworkInput input = input_of(options, graph, copies);
  input.types.activation = activations == at::kFloat ? 4 : 2;
  const NetworkCost cost =
      network_cost(input, whole(graph, options.meshes()), false, {.layers = options.layers});
  const Measured real = measure(options, graph, copies, activations);
  CHECK(cost.parameters() == real.parameters);
  CHECK(cost.flat_elements() == real.flat_elements);
  CHECK(cost.saved() == Approx(real.saved).epsilon(0.05));
  // Fused MLPs on the CPU have copies that those of a GPU have not.
  if (options.kernels != model::KernelChoice::kFused)
    CHECK(cost.peak == Approx(real.peak).epsilon(0.25));
}

}  // namespace

using model::BlockKind;
using model::RecomputePolicy;

TEST_CASE("parameters and kept activations are those of the real network", "[plan]") {
  const auto [name, options] = GENERATE(table<const char*, model::ModelOptions>(
      {{"GNN", options_of(BlockKind::kGnn, BlockKind::kGnn)},
       {"GraphTransformer", options_of(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer)},
       {"GNN and Transformer", options_of(BlockKind::kGnn, BlockKind::kTransformer)},
       {"Transformer", options_of(BlockKind::kTransformer, BlockKind::kTransformer)},
       {"point-wise", options_of(BlockKind::kPointWise, BlockKind::kPointWise)}}));
  for (const RecomputePolicy policy : {RecomputePolicy::kNone, RecomputePolicy::kMlp,
                                       RecomputePolicy::kBlock, RecomputePolicy::kFull}) {
    for (const int64_t copies : {1, 2}) {
      INFO(name << ", recompute " << enum_name(policy) << ", copies " << copies);
      model::ModelOptions o = options;
      o.set_recompute(policy);
      require_close(o, copies);
    }
  }
}

TEST_CASE("hierarchies keep and learn what the plan says", "[plan]") {
  const graph::Graph graph = three_meshes();
  const auto [name, mappers, processor] = GENERATE(table<const char*, BlockKind, BlockKind>(
      {{"GNN", BlockKind::kGnn, BlockKind::kGnn},
       {"GraphTransformer", BlockKind::kGraphTransformer, BlockKind::kGraphTransformer},
       {"Transformer", BlockKind::kTransformer, BlockKind::kTransformer},
       {"GNN without processor", BlockKind::kGnn, BlockKind::kNone}}));
  model::ModelOptions options = options_of(mappers, processor);
  for (model::BlockOptions* block : {&options.hierarchy.upscale, &options.hierarchy.downscale}) {
    block->kind = mappers;
    block->heads = 4;
  }
  for (const bool levels : {false, true}) {
    options.hierarchy.level_processing = levels;
    options.hierarchy.level_layers = 2;
    for (const RecomputePolicy policy : {RecomputePolicy::kNone, RecomputePolicy::kBlock}) {
      INFO(name << ", processors on all meshes " << levels << ", recompute " << enum_name(policy));
      options.set_recompute(policy);
      options.hierarchy.meshes = {"hidden", "middle", "deep"};
      require_close(options, 2, at::kFloat, graph);
      options.hierarchy.meshes = {"hidden", "middle"};
      require_close(options, 1, at::kBFloat16, graph);
    }
  }
}

TEST_CASE("ensembles with noise keep and learn what the plan says", "[plan]") {
  for (const BlockKind kind : {BlockKind::kGraphTransformer, BlockKind::kTransformer}) {
    for (const RecomputePolicy policy :
         {RecomputePolicy::kNone, RecomputePolicy::kMlp, RecomputePolicy::kBlock}) {
      INFO(enum_name(kind) << ", recompute " << enum_name(policy));
      model::ModelOptions options = options_of(BlockKind::kGraphTransformer, kind);
      options.ensemble.noise = model::NoiseKind::kConditioning;
      options.ensemble.noise_channels = 12;
      options.set_recompute(policy);
      require_close(options, 1);
      require_close(options, 3, at::kBFloat16);
    }
  }
}

TEST_CASE("learnt residuals keep and learn what the plan says", "[plan]") {
  graph::GraphOptions on_rings;
  on_rings.grid = "o8";
  on_rings.hidden.kind.set(graph::TriKind(1));
  const graph::Graph graph = graph::build_graph(on_rings, {});
  // Small networks, so that the residual is not lost in them.
  model::ModelOptions options = options_of(BlockKind::kPointWise, BlockKind::kPointWise);
  options.channels = 8;
  options.layers = 1;
  options.residual.theta_init = 0.2;
  options.residual.kind = model::ResidualKind::kScalarOrnstein;
  require_close(options, 2, at::kFloat, graph);
  options.residual.regressors = {"v8", "v9"};
  require_close(options, 2, at::kFloat, graph);
  options.residual.theta_train = false;
  require_close(options, 1, at::kFloat, graph);
  options.residual.theta_train = true;
  options.residual.kind = model::ResidualKind::kSpectralOrnstein;
  options.residual.grid = model::SpectralGrid::kOctahedral;
  options.residual.lmax = 3;
  require_close(options, 2, at::kFloat, graph);
  options.residual.regressors = {};
  require_close(options, 1, at::kFloat, graph);
  options.residual.truncate = true;
  require_close(options, 2, at::kFloat, graph);
  options.residual.regressors = {"v8"};
  require_close(options, 2, at::kFloat, graph);
  options.residual.anti_aliasing = false;
  require_close(options, 1, at::kFloat, graph);
}

TEST_CASE("truncated residuals keep nothing", "[plan]") {
  model::ModelOptions options = options_of(BlockKind::kPointWise, BlockKind::kPointWise);
  options.residual.kind = model::ResidualKind::kTruncated;
  options.residual.truncation_grid = "tri1";
  require_close(options, 1);
  require_close(options, 3);
  const NetworkInput input = input_of(options, test::random_graph(kSizes, 4), 1);
  REQUIRE((input.down.columns == kSizes.data && input.down.rows == 42));
  REQUIRE((input.up.columns == 42 && input.up.rows == kSizes.data));
  REQUIRE(input.up.entries == options.residual.truncation_neighbours * kSizes.data);
  // Most is there while they are taken, if there are many neighbours.
  options.channels = 8;
  options.layers = 1;
  options.residual.truncation_neighbours = 32;
  require_close(options, 2);
}

TEST_CASE("slices of layers take what the rank that has most of them takes", "[plan]") {
  const graph::Graph graph = test::random_graph(kSizes, 4);
  for (const BlockKind kind :
       {BlockKind::kGnn, BlockKind::kGraphTransformer, BlockKind::kTransformer}) {
    for (const int ranks : {2, 3}) {  // four heads
      INFO(enum_name(kind) << " over " << ranks << " ranks");
      const model::ModelOptions options = options_of(BlockKind::kGnn, kind);
      const NetworkCost cost = network_cost(input_of(options, graph, 1), whole(graph), false,
                                            {.layers = options.layers}, ranks);
      const Measured real = measure_ranks(options, graph, ranks, {});
      CHECK(cost.flat_elements() == real.flat_elements);
      if (ranks == 2) CHECK(cost.saved() == Approx(real.saved).epsilon(0.05));
      if (ranks == 3) {  // two heads where ranks have four thirds on average
        CHECK(cost.saved() >= real.saved);
        CHECK(cost.saved() <= 1.35 * real.saved);
      }
    }
  }
}

TEST_CASE("slices of a hierarchy are those of the processors on all its meshes", "[plan]") {
  const graph::Graph graph = three_meshes();
  model::ModelOptions options = options_of(BlockKind::kGnn, BlockKind::kGraphTransformer);
  options.hierarchy.meshes = {"hidden", "middle", "deep"};
  options.hierarchy.level_processing = true;
  const NetworkCost cost = network_cost(input_of(options, graph, 1), whole(graph, options.meshes()),
                                        false, {.layers = options.layers}, 2);
  const Measured real = measure_ranks(options, graph, 2, {});
  CHECK(cost.flat_elements() == real.flat_elements);
  CHECK(cost.saved() == Approx(real.saved).epsilon(0.05));
}

TEST_CASE("divided Transformers keep what the plan says", "[plan]") {
  const graph::Graph graph = test::random_graph(kSizes, 4);
  for (const auto attention :
       {model::AttentionSharing::kHeads, model::AttentionSharing::kSequence}) {
    for (const int64_t window : {0, 9}) {
      INFO("by " << enum_name(attention) << ", window " << window);
      model::ModelOptions options =
          options_of(BlockKind::kGraphTransformer, BlockKind::kTransformer);
      options.processor.window = window;
      StepInput input{.network = input_of(options, graph, 1), .attention = attention};
      input.hidden_order = graph::HiddenOrder::kMesh;
      input.layout.model = 2;
      const Division division = divide(input, graph);
      const NetworkCost cost =
          network_cost(input.network, division.largest(), true, {.layers = options.layers});
      CHECK(cost.saved() ==
            Approx(measure_ranks(options, graph, 2, attention).saved).epsilon(0.05));
    }
  }
}

TEST_CASE("kept activations of other options are those of the real network", "[plan]") {
  SECTION("fused MLPs") {
    model::ModelOptions o = options_of(BlockKind::kGnn, BlockKind::kGnn);
    o.kernels = model::KernelChoice::kFused;
    require_close(o, 1);
    o.set_recompute(RecomputePolicy::kMlp);
    require_close(o, 2);
  }
  SECTION("activations of 16 bits") {
    require_close(options_of(BlockKind::kGnn, BlockKind::kGnn), 1, at::kBFloat16);
    require_close(options_of(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer), 1,
                  at::kBFloat16);
  }
  SECTION("mappers in ranges of targets, processor in groups of layers") {
    for (const BlockKind kind : {BlockKind::kGnn, BlockKind::kGraphTransformer}) {
      model::ModelOptions o = options_of(kind, kind);
      o.encoder.recompute = o.decoder.recompute = RecomputePolicy::kBlock;
      o.processor.recompute = RecomputePolicy::kFull;
      o.encoder.chunks = o.decoder.chunks = 3;
      o.processor.chunks = 2;
      require_close(o, 1);
      o.encoder.recompute = o.decoder.recompute = RecomputePolicy::kNone;
      require_close(o, 2);
    }
  }
  SECTION("processor in ranges of edges") {
    model::ModelOptions o = options_of(BlockKind::kGnn, BlockKind::kGnn);
    o.layers = 4;
    o.processor.edge_ranges = 3;
    o.processor.recompute = RecomputePolicy::kBlock;
    require_close(o, 1);
    require_close(o, 2);
    o.processor.recompute = RecomputePolicy::kFull;
    o.processor.chunks = 2;
    require_close(o, 1);
    o.kernels = model::KernelChoice::kFused;
    o.decoder.chunks = 2;
    require_close(o, 1);
  }
  SECTION("other MLPs, heads and target features") {
    model::ModelOptions o = options_of(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
    for (model::BlockOptions* block :
         {&o.encoder, &o.processor, static_cast<model::BlockOptions*>(&o.decoder)}) {
      block->qk_norm = block->edge_pre_mlp = true;
      block->mlp_implementation = model::MlpImplementation::kSwiglu;
      block->attention_channels = 32;
    }
    o.decoder.target_features = {"coordinates", "forcings", "trainable_parameters"};
    o.trainable_parameters.hidden_to_hidden = 0;
    require_close(o, 1);
    o = options_of(BlockKind::kGnn, BlockKind::kGnn);
    o.encoder.mlp_extra_layers = o.processor.mlp_extra_layers = 1;
    o.processor.mlp_hidden_ratio = 2.0;
    o.processor.activation = model::Activation::kRelu;
    require_close(o, 1);
  }
  SECTION("attention in a window") {
    model::ModelOptions o = options_of(BlockKind::kGnn, BlockKind::kTransformer);
    o.processor.window = 64;
    require_close(o, 1);
  }
}

TEST_CASE("parameters and products are those of Anemoi's models", "[plan]") {
  struct Published {
    BlockKind kind;
    int64_t channels;
    GraphTotals totals;
    double parameters, forward_flops;
  };
  for (const Published& p : std::vector<Published>{
           {BlockKind::kGnn, 512, test::kO96Tri5, 48.4e6, 4.84e12},
           {BlockKind::kGnn, 1024, test::kO96Tri5, 185.6e6, 19.3e12},
           {BlockKind::kGnn, 512, test::kN320Tri5, 69.2e6, 15.9e12},
           {BlockKind::kGnn, 512, test::kN320Tri6, 73.0e6, 28.3e12},
           {BlockKind::kGnn, 1024, test::kN320Tri6, 210.1e6, 112.8e12},
           {BlockKind::kGraphTransformer, 1024, test::kO96Tri5, 248.9e6, 5.93e12},
           {BlockKind::kGraphTransformer, 1024, test::kN320Tri6, 273.5e6, 34.5e12},
           {BlockKind::kGraphTransformer, 512, test::kN320Tri6, 89.0e6, 8.83e12}}) {
    const NetworkInput input = test::published_network(p.kind, p.channels, p.totals);
    const NetworkCost cost = network_cost(input, test::one_rank(p.totals), false, {.layers = 16});
    double unsplit = 0.0, executed = 0.0;
    for (const PartCost* part : cost.parts()) {
      unsplit += part->unsplit_flops;
      executed += part->forward_flops();
    }
    INFO(enum_name(p.kind) << " of " << p.channels << " channels, " << p.totals.hidden
                           << " hidden nodes");
    CHECK(static_cast<double>(cost.parameters()) == Approx(p.parameters).epsilon(2e-3));
    CHECK(unsplit == Approx(p.forward_flops).epsilon(0.05));
    CHECK(executed < 1.01 * unsplit);
  }
}
