// SPDX-License-Identifier: Apache-2.0
// Layers in stages over ranks, sliced and of divided samples too, give the numbers of one rank:
// forecasts of two steps, gradients of all parameters.
#include "model/base/stages.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "graph/partition.h"
#include "parallel/backends/comm_virtual.h"
#include "parallel/process_mesh.h"
#include "tests/support/catch.h"
#include "tests/support/network_families.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;
using parallel::Counts;
using test::max_difference;
using test::network_families;
using test::NetworkFamily;
using test::random_tensor;
using test::toy_layout;

namespace {

constexpr double kRounding = 1e-12;

struct Toy {
  ParameterSet parameters{at::kDouble, 3};
  std::unique_ptr<EncoderProcessorDecoder> network;

  Toy(const NetworkFamily& family, const parallel::ProcessMesh& mesh, const Counts& layers,
      const Shard* shard) {
    parameters.slice_over(mesh.tensor());
    parameters.divide_over(Stages(mesh.stage_links(), layers));
    network = std::make_unique<EncoderProcessorDecoder>(
        parameters, family.plan(),
        GraphTensors::create(NetworkFamily::graph(), ModelOptions().edge_attributes, at::kDouble,
                             shard));
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

Numbers numbers_of(const NetworkFamily& family, const parallel::ProcessMesh& mesh,
                   const Counts& layers) {
  parallel::Communicator& sample = mesh.model();
  const graph::GraphPartition partition =
      graph::make_partition(NetworkFamily::graph(), sample.size(), graph::HiddenOrder::kHilbert, 2);
  const Shard shard{partition, sample, graph::SourceRows::kHalo, AttentionSharing::kAuto};
  const Toy toy(family, mesh, layers, sample.size() > 1 ? &shard : nullptr);
  const at::Tensor inputs = at::tensor(toy_layout().input_prognostic, at::kLong),
                   outputs = at::tensor(toy_layout().output_prognostic, at::kLong);
  parallel::StageLinks& stages = mesh.stage_links();
  const std::vector<at::Tensor> whole = family.inputs();
  std::vector<at::Tensor> x, own;
  for (const char* dataset : {"data", "other"})
    own.push_back(at::tensor(partition.of(dataset).owned(sample.rank()), at::kLong));
  for (size_t i = 0; i < whole.size(); ++i)
    x.push_back(whole[i].index_select(3, own[i]));
  Numbers numbers;
  at::Tensor total;
  for (const int64_t step : {0, 1}) {
    std::vector<at::Tensor> y =
        toy.network->forward(x, {.step = step, .noise = family.noise(*toy.network, step)});
    for (size_t i = 0; i < y.size() && stages.is_last(); ++i) {
      const int64_t nodes = whole[i].size(3);
      const at::Tensor weights = random_tensor({nodes, 1}, 2).index_select(0, own[i]),
                       value = (y[i].square() * weights).sum(),
                       all = at::zeros({2, 1, test::kFamilyMembers, nodes, 5}, at::kDouble);
      total = total.defined() ? total + value : value;
      all.index_copy_(3, own[i], y[i].detach());
      sample.all_reduce(all, parallel::Reduction::kSum);
      numbers.emplace_back(concat("output ", i, " of step ", step), all);
    }
    if (step == 1) break;
    y = stages.last_to_first(y, at::kCPU);
    for (size_t i = 0; i < y.size(); ++i) {
      const at::Tensor old = x[i].narrow(1, 1, 1);
      x[i] = at::cat({old, old.index_copy(-1, inputs, y[i].index_select(-1, outputs))}, 1);
    }
  }
  stages.with_sent(total).backward();
  for (const Parameter& p : toy.parameters.entries()) {
    if (!p.is_optimised()) continue;
    const at::Tensor gradient = whole_tensor(p, toy.parameters.gradient(p)).contiguous();
    sample.all_reduce(gradient, parallel::Reduction::kSum);
    numbers.emplace_back(p.name, gradient);
  }
  return numbers;
}

// Outputs come first, and are known on the last stage only.
void compare(const Numbers& got, const Numbers& wanted, size_t num_outputs) {
  AIFS_CHECK(got.size() + num_outputs == wanted.size(), got.size(), " numbers for ", wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto& [name, number] = wanted[i + num_outputs];
    const double scale = 1.0 + number.abs().max().item<double>();
    if (max_difference(got[i].second, number) > kRounding * scale) throw Error(name + " differs");
  }
}

struct Layout {
  Counts layers;  // of each stage
  int64_t model = 1, tensor = 1;
};

void require_one_ranks_numbers(const NetworkFamily& family, const std::vector<Layout>& layouts) {
  const Numbers wanted =
      numbers_of(family, parallel::ProcessMesh(), {family.plan().options.num_layers()});
  for (const Layout& layout : layouts) {
    const parallel::MeshSizes sizes{.model = layout.model,
                                    .data = 1,
                                    .tensor = layout.tensor,
                                    .pipeline = static_cast<int64_t>(layout.layers.size())};
    INFO(family.name << ", stages of " << at::IntArrayRef(layout.layers) << ", model "
                     << layout.model << ", tensor " << layout.tensor);
    REQUIRE_NOTHROW(
        parallel::run_as_threads(static_cast<int>(sizes.model * sizes.tensor * sizes.pipeline),
                                 [&](parallel::Communicator& world) {
                                   const parallel::ProcessMesh mesh(world, sizes);
                                   const size_t outputs = 2 * family.inputs().size();
                                   compare(numbers_of(family, mesh, layout.layers), wanted,
                                           mesh.stage_links().is_last() ? 0 : outputs);
                                 }));
  }
}

bool has_layers(const NetworkFamily& family) {
  return family.plan().options.processor.kind != BlockKind::kNone;
}

NetworkFamily changed(const std::function<void(ModelOptions&)>& change) {
  return {"with options", change};
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
  for (const NetworkFamily& family : network_families()) {
    const int64_t n = family.plan().options.num_layers();
    if (!has_layers(family)) continue;
    require_one_ranks_numbers(family, {{{0, 2, n - 2, 0}}, {Counts(static_cast<size_t>(n), 1)}});
  }
}

TEST_CASE("slices, divided samples and stages of every family give the numbers of one rank",
          "[stages]") {
  for (const NetworkFamily& family : network_families()) {
    const int64_t n = family.plan().options.num_layers();
    std::vector<Layout> layouts;
    if (has_layers(family)) layouts.push_back({{n - 1, 1}, 2, 1});
    if (family.can_be_sliced()) {
      layouts.push_back({{n}, 2, 2});
      if (has_layers(family)) layouts.push_back({{1, n - 1}, 1, 2});
    }
    require_one_ranks_numbers(family, layouts);
  }
}

TEST_CASE("stages work with the options of the network", "[stages]") {
  const std::vector<Layout> layouts{{{1, 2}}, {{1, 1, 1}}};
  require_one_ranks_numbers(
      changed([](ModelOptions& o) {
        o.encoder.kind = o.decoder.kind = BlockKind::kGraphTransformer;
        o.latent_skip = false;
        o.bounding = {{.kind = BoundingKind::kRelu, .variables = {"p"}}};
        o.decoder.target_features = {"forcings", "coordinates", "trainable_parameters"};
        o.set_recompute(RecomputePolicy::kBlock);
        o.encoder.chunks = o.decoder.chunks = 3;
        o.processor.edge_ranges = 2;
        o.processor.offload = 1;
      }),
      layouts);
  require_one_ranks_numbers(changed([](ModelOptions& o) {
                              o.encoder.kind = o.processor.kind = o.decoder.kind =
                                  BlockKind::kTransformer;
                              o.set_recompute(RecomputePolicy::kFull);
                              o.processor.chunks = 2;
                              o.processor.window = 3;
                            }),
                            layouts);
}
