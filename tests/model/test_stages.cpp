// SPDX-License-Identifier: Apache-2.0
// Layers in stages over ranks give the numbers of one rank: forecasts of two steps, gradients of
// all parameters.
#include "model/stages.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/encoder_processor_decoder.h"
#include "parallel/comm_virtual.h"
#include "parallel/process_mesh.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/toy_layout.h"

using namespace aifs;
using namespace aifs::model;
using test::max_difference;
using test::random_tensor;
using test::toy_layout;

namespace {

constexpr int64_t kData = 37, kHidden = 11, kLayers = 3;
constexpr double kRounding = 1e-12;

ModelOptions options_of(BlockKind mappers, BlockKind processor) {
  ModelOptions options;
  options.channels = 12;
  options.layers = kLayers;
  for (BlockOptions* block :
       {&options.encoder, &options.processor, static_cast<BlockOptions*>(&options.decoder)})
    block->heads = 3;
  options.encoder.kind = options.decoder.kind = mappers;
  options.processor.kind = processor;
  return options;
}

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  std::unique_ptr<EncoderProcessorDecoder> network;

  Toy(const ModelOptions& options, const parallel::ProcessMesh& mesh,
      const parallel::Counts& layers) {
    parameters.slice_over(mesh.tensor());
    parameters.divide_over(Stages(mesh.stage_links(), layers));
    const GraphTensors graph = GraphTensors::create(
        test::random_graph({kData, kHidden, 60, 66, 111}, 5), options.edge_attributes, at::kDouble);
    network = std::make_unique<EncoderProcessorDecoder>(parameters, options, graph, toy_layout());
    parameters.flatten(at::kCPU);
    uint64_t seed = 90;
    for (const Parameter& p : parameters.entries()) {
      if (!p.is_optimised()) continue;
      const at::Tensor shift = random_tensor(whole_sizes(p), ++seed);
      parameters.assign(p.name, whole_tensor(p, p.tensor.detach()) + 0.1 * shift);
    }
  }
};

// By name: the outputs of two steps where they are known, and all gradients, whole.
using Numbers = std::vector<std::pair<std::string, at::Tensor>>;

Numbers numbers_of(const ModelOptions& options, const parallel::ProcessMesh& mesh,
                   const parallel::Counts& layers) {
  const Toy toy(options, mesh, layers);
  const at::Tensor weights = random_tensor({kData, 1}, 2),
                   inputs = at::tensor(toy_layout().input_prognostic, at::kLong),
                   outputs = at::tensor(toy_layout().output_prognostic, at::kLong);
  at::Tensor x = random_tensor({2, 2, 1, kData, 6}, 1), total;
  parallel::StageLinks& stages = mesh.stage_links();
  Numbers numbers;
  for (const int64_t step : {0, 1}) {
    const at::Tensor y = toy.network->forward(x, {.step = step});
    if (stages.is_last()) {
      const at::Tensor value = (y.square() * weights).sum();
      total = step == 0 ? value : total + value;
      numbers.emplace_back(concat("output ", step), y.detach());
    }
    if (step == 1) break;
    for (const at::Tensor& known : stages.last_to_first({y}, at::kCPU)) {
      const at::Tensor old = x.narrow(1, 1, 1);
      x = at::cat({old, old.index_copy(-1, inputs, known.index_select(-1, outputs))}, 1);
    }
  }
  stages.with_sent(total).backward();
  for (const Parameter& p : toy.parameters.entries()) {
    if (p.is_optimised()) numbers.emplace_back(p.name, whole_tensor(p, toy.parameters.gradient(p)));
  }
  return numbers;
}

void compare(const Numbers& got, const Numbers& wanted, bool with_outputs) {
  const size_t skipped = with_outputs ? 0 : 2;
  AIFS_CHECK(got.size() + skipped == wanted.size(), got.size(), " numbers for ", wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto& [name, number] = wanted[i + skipped];
    const double scale = 1.0 + number.abs().max().item<double>();
    if (max_difference(got[i].second, number) > kRounding * scale) throw Error(name + " differs");
  }
}

void require_one_ranks_numbers(const ModelOptions& options,
                               const std::vector<parallel::Counts>& divisions, int64_t slices = 1) {
  const Numbers wanted = numbers_of(options, parallel::ProcessMesh(), {kLayers});
  for (const parallel::Counts& layers : divisions) {
    const parallel::MeshSizes sizes{
        .data = 1, .tensor = slices, .pipeline = static_cast<int64_t>(layers.size())};
    INFO(enum_name(options.processor.kind) << ", stages of " << at::IntArrayRef(layers));
    REQUIRE_NOTHROW(parallel::run_as_threads(
        static_cast<int>(sizes.pipeline * slices), [&](parallel::Communicator& world) {
          const parallel::ProcessMesh mesh(world, sizes);
          compare(numbers_of(options, mesh, layers), wanted, mesh.stage_links().is_last());
        }));
  }
}

}  // namespace

TEST_CASE("layers belong to the stages that have them", "[stages]") {
  REQUIRE(Stages().of_layer(7) == 0);
  REQUIRE(Stages().last() == 0);
  REQUIRE_NOTHROW(parallel::run_as_threads(3, [](parallel::Communicator& group) {
    parallel::StageLinks links(group);
    const Stages stages(links, {0, 2, 3});
    for (const auto& [layer, stage] : {std::pair{0, 1}, {1, 1}, {2, 2}, {4, 2}})
      AIFS_CHECK(stages.of_layer(layer) == stage, "layer ", layer, " is elsewhere");
    const at::Tensor whole = random_tensor({4, 2}, 1);
    AIFS_CHECK(stages.slice(1, 4).of(whole).size(0) == (group.rank() == 1 ? 4 : 0), "other rows");
  }));
}

TEST_CASE("stages of every family give the numbers of one rank", "[stages]") {
  const std::vector<parallel::Counts> divisions{{2, 1}, {1, 1, 1}, {0, 3}, {3, 0}, {0, 2, 1, 0}};
  require_one_ranks_numbers(options_of(BlockKind::kGnn, BlockKind::kGnn), divisions);
  require_one_ranks_numbers(options_of(BlockKind::kGraphTransformer, BlockKind::kGraphTransformer),
                            divisions);
  require_one_ranks_numbers(options_of(BlockKind::kTransformer, BlockKind::kTransformer),
                            divisions);
  require_one_ranks_numbers(options_of(BlockKind::kPointWise, BlockKind::kPointWise), divisions);
}

TEST_CASE("stages work with the options of the network", "[stages]") {
  ModelOptions options = options_of(BlockKind::kGraphTransformer, BlockKind::kGnn);
  options.latent_skip = false;
  options.decoder.target_features = {"forcings", "coordinates", "trainable_parameters"};
  options.residual.kind = ResidualKind::kTruncated;
  options.residual.truncation_grid = "tri0";
  options.bounding = {{.kind = BoundingKind::kRelu, .variables = {"p"}}};
  options.set_recompute(RecomputePolicy::kBlock);
  options.encoder.chunks = options.decoder.chunks = 3;
  options.processor.edge_ranges = 2;
  options.processor.offload = 1;
  require_one_ranks_numbers(options, {{1, 2}, {1, 1, 1}});
  options = options_of(BlockKind::kTransformer, BlockKind::kTransformer);
  options.set_recompute(RecomputePolicy::kFull);
  options.processor.chunks = 2;
  options.processor.window = 3;
  require_one_ranks_numbers(options, {{2, 1}, {1, 1, 1}});
}

TEST_CASE("stages whose layers are sliced give the numbers of one rank", "[stages]") {
  for (const BlockKind kind : {BlockKind::kGnn, BlockKind::kTransformer})
    require_one_ranks_numbers(options_of(BlockKind::kGraphTransformer, kind), {{2, 1}, {1, 1, 1}},
                              /*slices=*/2);
}
