// SPDX-License-Identifier: Apache-2.0
#include "bench/step_case.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <regex>

#include "app/run/device.h"
#include "core/check.h"
#include "core/file_io.h"
#include "graph/builder.h"
#include "plan/step_plan.h"

namespace aifs::bench {

namespace {

constexpr int64_t kPrognostic = 88, kForcings = 13;
constexpr const char* kDiagnostic = "tp";
constexpr uint64_t kSeed = 1;

// In blocks with a generator each: the same numbers for any number of threads.
at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  constexpr int64_t kBlock = 1 << 24;
  constexpr uint64_t kSeeds = 16;
  const at::Tensor values = at::empty(sizes, at::kFloat);
  const std::vector<at::Tensor> blocks = values.view(-1).split(kBlock);
  at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      at::Tensor(blocks[i]).normal_(
          0.0, 1.0, at::make_generator<at::CPUGeneratorImpl>(seed + kSeeds * uint64_t{i}));
  });
  return values;
}

}  // namespace

StepCase StepCase::parse(const std::string& name) {
  static const std::regex pattern(
      "(gnn|gt|transformer)-([1-9][0-9]{0,5})-([on][0-9]{1,5})-tri([0-9]|1[0-2])-(fp32|tf32|bf16)(-"
      "[0-9]"
      "+gib)?");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) {
    throw ConfigError("--case", concat("'", name, "' is no case"),
                      "for example gnn-512-n320-tri6-bf16");
  }
  StepCase step_case;
  step_case.name = name;
  using model::BlockKind;
  if (match[1] != "gnn") step_case.mappers = step_case.processor = BlockKind::kGraphTransformer;
  if (match[1] == "transformer") step_case.processor = BlockKind::kTransformer;
  step_case.channels = std::stoll(match[2]);
  step_case.grid = match[3];
  step_case.refinement = std::stoll(match[4]);
  step_case.precision = match[5] == "bf16"   ? train::Precision::kBf16Mixed
                        : match[5] == "tf32" ? train::Precision::kTf32
                                             : train::Precision::kFp32;
  // Meant for N320 with 6 levels.
  using model::RecomputePolicy;
  const std::string budget = match[6];
  if (budget == "-80gib" || budget == "-37gib") {
    step_case.recompute_mappers = RecomputePolicy::kEmbedding;
    step_case.recompute_processor = RecomputePolicy::kMlp;
  } else if (budget == "-18gib" || budget == "-16gib") {
    step_case.recompute_mappers = step_case.recompute_processor = RecomputePolicy::kBlock;
    step_case.mapper_chunks = budget == "-16gib" ? 8 : 4;
    step_case.encoder_chunks = 1;
  } else if (!budget.empty()) {
    throw ConfigError("--case", concat("no settings for '", budget, "'"),
                      "-80gib, -37gib, -18gib or -16gib");
  }
  return step_case;
}

model::ModelOptions StepCase::model_options() const {
  model::ModelOptions options;
  options.channels = channels;
  options.layers = layers;
  options.encoder.recompute = options.decoder.recompute = recompute_mappers;
  options.processor.recompute = recompute_processor;
  options.encoder.chunks =
      encoder_chunks > 0 ? encoder_chunks : std::max<int64_t>(1, mapper_chunks / 4);
  options.decoder.chunks = mapper_chunks;
  options.processor.chunks = std::max<int64_t>(1, groups);
  options.processor.edge_ranges = edge_ranges;
  options.processor.offload = offload;
  options.kernels = kernels;
  options.encoder.kind = options.decoder.kind = mappers;
  options.processor.kind = processor;
  if (processor == model::BlockKind::kTransformer) {
    options.processor.window = 512;
    options.processor.attention = model::AttentionBackend::kFlash;
  }
  options.bounding = {{.kind = model::BoundingKind::kRelu, .variables = {kDiagnostic}}};
  options.encoder.validate("model.encoder");
  options.processor.validate("model.processor");
  options.decoder.validate("model.decoder");
  options.validate("model");
  return options;
}

model::FieldLayout step_layout() {
  model::FieldLayout layout;
  layout.num_inputs = kPrognostic + kForcings;
  for (int64_t v = 0; v < kPrognostic; ++v) {
    layout.outputs.names.push_back(concat("prognostic_", v));
    layout.input_prognostic.push_back(v);
    layout.output_prognostic.push_back(v);
  }
  layout.outputs.names.push_back(kDiagnostic);
  return layout;
}

data::VariableTable step_variables() {
  std::vector<std::string> names = step_layout().outputs.names;
  data::RoleOptions roles;
  for (int64_t v = 0; v < kForcings; ++v)
    roles.forcing.push_back(concat("forcing_", v));
  names.insert(names.begin() + kPrognostic, roles.forcing.begin(), roles.forcing.end());
  roles.diagnostic = {kDiagnostic};
  return {names, roles};
}

graph::Graph step_graph(const StepCase& step_case, const std::string& cache_folder) {
  graph::GraphOptions options;
  options.grid = step_case.grid;
  options.hidden.refinement = step_case.refinement;
  if (!cache_folder.empty()) {
    make_directories(cache_folder);
    options.file =
        fs::path(cache_folder) / concat(step_case.grid, "-tri", step_case.refinement, ".nc");
  }
  return graph::load_or_build_graph(options, {});
}

StepShares::StepShares(const parallel::ProcessMesh& mesh, const StepCase& step_case,
                       const graph::Graph& graph)
    : mesh_(&mesh), nodes_per_rank_{graph.nodes("data").num_nodes()} {
  if (!divided()) return;
  partition_ =
      graph::make_partition(graph, mesh.sizes().model, graph::HiddenOrder::kAuto, step_case.layers);
  nodes_per_rank_ = partition_.data.counts();
}

int64_t StepShares::first_node() const {
  return starts_of(nodes_per_rank_)[static_cast<size_t>(mesh_->model().rank())];
}
int64_t StepShares::num_nodes() const {
  return nodes_per_rank_[static_cast<size_t>(mesh_->model().rank())];
}

StepOperations step_operations(const StepCase& step_case, const graph::Graph& graph) {
  const bool half = step_case.precision == train::Precision::kBf16Mixed;
  plan::StepInput input;
  input.network = {.model = step_case.model_options(),
                   .totals = plan::GraphTotals::of(graph),
                   .prognostic = kPrognostic,
                   .forcing = kForcings,
                   .diagnostic = 1,
                   .types = {4, half ? 2 : 4},
                   .gpu = true};
  input.dataset_variables = kPrognostic + kForcings + 1;
  input.rollout = step_case.rollout;
  input.recompute_steps = step_case.recompute_steps && step_case.rollout > 1;
  const plan::StepPlan plan = plan::plan_step(input, plan::divide(graph, {}));
  return {plan.flops.useful_step, plan.flops.executed_step};
}

train::PointwiseLoss step_loss(const graph::Graph& graph, const at::Device& device,
                               const StepShares& shares) {
  const std::vector<float>& areas = graph.nodes("data").attributes.at("area_weight").values;
  const at::Tensor nodes =
      train::normalise_weights(at::tensor(at::ArrayRef<float>(areas)), train::WeightNorm::kUnitSum);
  const at::Tensor variables = 0.5 + at::arange(kPrognostic + 1, at::kFloat) / kPrognostic;
  train::PointwiseLoss loss;
  loss.scalers = {train::over_axis("general_variable", variables.to(device), train::kVariable),
                  train::over_axis("node_weights", nodes.to(device), train::kGrid)};
  if (shares.divided()) {
    loss.nodes = train::slice_of_group(shares.nodes_per_rank(), shares.mesh().model());
  }
  return loss;
}

namespace {

model::GraphTensors own_tensors(const StepCase& step_case, const graph::Graph& graph,
                                at::ScalarType dtype, const StepShares& shares) {
  const model::Shard shard{shares.partition(), shares.mesh().model()};
  return model::GraphTensors::create(graph, step_case.model_options().edge_attributes, dtype,
                                     shares.divided() ? &shard : nullptr);
}

}  // namespace

StepNetwork::StepNetwork(const StepCase& step_case, const graph::Graph& graph,
                         const at::Device& device, const StepShares& shares)
    : parameters(train::weight_type(step_case.precision), kSeed,
                 train::activation_type(step_case.precision)),
      network(parameters, step_case.model_options(),
              own_tensors(step_case, graph, parameters.dtype(), shares).to(device), step_layout()) {
  parameters.flatten(device);
}

namespace {

// This rank's nodes of fields (B, T, E, n, V).
at::Tensor own_nodes(const at::Tensor& fields, const at::Device& device, const StepShares& shares) {
  return fields.narrow(3, shares.first_node(), shares.num_nodes()).to(device).contiguous();
}

}  // namespace

StepFields step_fields(int64_t num_nodes, const at::Device& device, const StepShares& shares) {
  const at::Tensor input = normal({1, 2, 1, num_nodes, kPrognostic + kForcings}, 2);
  // The truth is the newest state and a bit, as in a forecast.
  at::Tensor truth = 0.3 * normal({1, 1, 1, num_nodes, kPrognostic + 1}, 3);
  truth.narrow(-1, 0, kPrognostic).add_(input.narrow(1, 1, 1).narrow(-1, 0, kPrognostic));
  return {own_nodes(input, device, shares), own_nodes(truth, device, shares)};
}

at::Tensor forecast_batch(int64_t num_nodes, int64_t rollout, const at::Device& device,
                          const StepShares& shares) {
  const int64_t variables = kPrognostic + kForcings + 1;
  const at::Tensor first = normal({1, 1, 1, num_nodes, variables}, 2);
  return own_nodes(first + 0.3 * normal({1, 2 + rollout, 1, num_nodes, variables}, 3), device,
                   shares);
}

}  // namespace aifs::bench
