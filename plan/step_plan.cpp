// SPDX-License-Identifier: Apache-2.0
#include "plan/step_plan.h"

#include "core/check.h"
#include "core/shares.h"

namespace aifs::plan {

namespace {

void check(const StepInput& input) {
  const model::ModelOptions& m = input.network.model;
  const Layout& layout = input.layout;
  if (input.stage_layers.empty() && layout.pipeline > m.layers) {
    throw ConfigError("parallel.pipeline",
                      concat("is ", layout.pipeline, ", the processor has ", m.layers, " layers"));
  }
  model::check_stages(m.processor, layout.pipeline);
  if (layout.pipeline > 1 &&
      (!m.hierarchy.meshes.empty() || m.ensemble.noise != model::NoiseKind::kNone)) {
    throw ConfigError("parallel.pipeline",
                      "there is no plan for stages of a hierarchy or of an ensemble with noise");
  }
  if (layout.model > 1 && m.residual.truncate &&
      m.residual.kind == model::ResidualKind::kSpectralOrnstein)
    throw ConfigError("model.residual.truncate", "there is no plan for a filter over ranks");
  if (layout.model > 1 && m.residual.kind == model::ResidualKind::kTruncated)
    throw ConfigError("model.residual.kind",
                      "there is no plan for a truncated residual over ranks");
  model::check_slices(m.processor, layout.tensor);
}

// All nodes and edges on one rank.
RankRows undivided(const GraphTotals& totals) {
  RankRows rows{.data = totals.data, .hidden = totals.hidden};
  rows.encoder = {.edges = totals.encoder_edges, .sources = totals.data};
  rows.processor = {.edges = totals.processor_edges, .sources = totals.hidden};
  rows.decoder = {.edges = totals.decoder_edges, .sources = totals.hidden};
  int64_t finer = totals.hidden;
  for (const MeshTotals& mesh : totals.coarser) {
    rows.coarser.push_back({.nodes = mesh.nodes,
                            .within = {.edges = mesh.within, .sources = mesh.nodes},
                            .up = {.edges = mesh.up, .sources = finer},
                            .down = {.edges = mesh.down, .sources = mesh.nodes}});
    finer = mesh.nodes;
  }
  return rows;
}

}  // namespace

double StepPlan::bytes(const std::string& operation) const {
  double sum = 0.0;
  for (const Transfer& t : transfers)
    sum += t.operation == operation ? t.bytes : 0.0;
  return sum;
}

double StepPlan::calls(const std::string& operation) const {
  double sum = 0.0;
  for (const Transfer& t : transfers)
    sum += t.operation == operation ? t.calls : 0.0;
  return sum;
}

namespace {

DivisionOptions division_options(const StepInput& input) {
  const model::ModelOptions& m = input.network.model;
  const auto attention = [](const model::BlockOptions& block,
                            int64_t tensor) -> std::optional<model::TransformerOptions> {
    if (block.kind != model::BlockKind::kTransformer) return std::nullopt;
    return attention_of(block, balanced_counts(block.heads, tensor)[0]);
  };
  return {.ranks = input.layout.model,
          .order = input.hidden_order,
          .mapper_sources = input.mapper_sources,
          .processor_layers = input.network.model.layers,
          .ranks_per_node = input.machine.ranks_per_node,
          .meshes = m.meshes(),
          .encoder = attention(m.encoder, 1),
          .processor = attention(m.processor, input.layout.tensor),
          .decoder = attention(m.decoder, 1),
          .upscale = attention(m.hierarchy.upscale, 1),
          .downscale = attention(m.hierarchy.downscale, 1),
          .attention = input.attention};
}

}  // namespace

Division divide(const StepInput& input, const graph::Graph& graph) {
  return divide(graph, division_options(input));
}

Division divide(const StepInput& input, const CountedGraph& graph) {
  return divide(graph, division_options(input));
}

StepPlan plan_step(const StepInput& input, const graph::Graph& graph) {
  return plan_step(input, divide(input, graph));
}

StepPlan plan_step(const StepInput& input, const Division& division) {
  check(input);
  const Layout& layout = input.layout;
  const NetworkInput& network = input.network;
  const RankRows rows = division.largest();
  const auto batches = static_cast<double>(input.accumulate_batches);

  StepPlan plan;
  plan.layout = layout;
  plan.samples = batches * static_cast<double>(input.batch_size * layout.data);
  const NetworkCost whole =
      network_cost(network, undivided(network.totals), false, {.layers = network.model.layers});
  plan.parameters = whole.parameters();
  for (const PartCost* part : whole.parts())
    plan.flops.unsplit_forward += part->unsplit_flops / static_cast<double>(input.batch_size);
  plan.flops.useful_step = 3.0 * plan.flops.unsplit_forward * static_cast<double>(input.rollout) *
                           plan.samples / static_cast<double>(layout.ranks());

  // Stages meet several times in a rollout: their batches do not overlap then.
  const bool overlaps = input.rollout == 1;
  const std::vector<int64_t> layers = input.stage_layers.empty()
                                          ? balanced_counts(network.model.layers, layout.pipeline)
                                          : input.stage_layers;
  double slowest = 0.0;
  for (const Stage& stage : Stage::pipeline(layers, overlaps ? input.accumulate_batches : 1)) {
    const NetworkCost cost = network_cost(network, rows, division.divided(), stage, layout.tensor);
    const MemoryPlan memory = plan_memory(input, rows, stage, cost);
    if (memory.device() > plan.memory.device()) plan.memory = memory;
    double backward_s = 0.0;
    const double batch_s = compute_s(input, cost, backward_s);
    if (batch_s <= slowest) continue;
    slowest = batch_s;
    plan.transfers = plan_transfers(input, rows, division.divided(), cost, backward_s);
    plan.time.optimizer_s = optimizer_s(input, cost);
    plan.flops.executed_step = 0.0;
    for (const PartCost* part : cost.parts())
      plan.flops.executed_step +=
          batches * static_cast<double>(input.rollout) *
          (part->executed_flops() + (input.recompute_steps ? part->forward_flops() : 0.0));
  }
  plan.time.compute_s = batches * slowest;
  plan.time.bubble_s =
      static_cast<double>(layout.pipeline - 1) * slowest * (overlaps ? 1.0 : batches);
  for (const Transfer& t : plan.transfers)
    plan.time.exposed_s += t.exposed;
  return plan;
}

}  // namespace aifs::plan
