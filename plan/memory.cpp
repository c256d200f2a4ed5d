// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/step_plan.h"

namespace aifs::plan {

namespace {

double share(double whole, bool divided, int64_t shards) {
  return divided ? whole / static_cast<double>(shards) : whole;
}

constexpr double kEdgeIndex = 4 + 4 + 4 + 8;  // bytes of an edge in an EdgeIndex

// Counts what an EdgeTensors and its index hold (model/nodes/graph_tensors.h).
double edge_bytes(const EdgeRows& edges, int64_t all_edges, const NetworkInput& network) {
  const auto m = static_cast<double>(edges.edges);
  const double attributes = m * static_cast<double>(network.edge_attributes * network.types.weight);
  return attributes + m * kEdgeIndex + static_cast<double>(all_edges) * 8;
}

// Edges and constant matrices that a rank of the stage holds.
double graph_bytes(const RankRows& rows, const Stage& stage, const NetworkInput& network) {
  const auto weight = static_cast<double>(network.types.weight);
  double bytes = edge_bytes(rows.processor, network.totals.processor_edges, network);
  if (stage.encoder) bytes += edge_bytes(rows.encoder, network.totals.encoder_edges, network);
  if (stage.decoder) bytes += edge_bytes(rows.decoder, network.totals.decoder_edges, network);
  for (size_t i = 0; i < rows.coarser.size(); ++i) {
    const CoarseRows& mesh = rows.coarser[i];
    const MeshTotals& all = network.totals.coarser[i];
    bytes += edge_bytes(mesh.within, all.within, network) + edge_bytes(mesh.up, all.up, network) +
             edge_bytes(mesh.down, all.down, network);
  }
  if (stage.decoder) {
    for (const MatrixSize& matrix : {network.down, network.up})
      bytes += static_cast<double>(matrix.entries) * (weight + kEdgeIndex);
  }
  return bytes;
}

}  // namespace

MemoryPlan plan_memory(const StepInput& input, const RankRows& rows, const Stage& stage,
                       const NetworkCost& cost) {
  const Layout& layout = input.layout;
  const NetworkInput& network = input.network;
  const int64_t shards = layout.shards(input.machine.ranks_per_node);
  const auto weight = static_cast<double>(network.types.weight);
  const double values = static_cast<double>(cost.flat_elements()) * weight;
  MemoryPlan plan;
  const bool parameters =
      layout.sharding == Sharding::kParameters || layout.sharding == Sharding::kHybrid;
  const bool gradients = parameters || layout.sharding == Sharding::kGradients;
  const bool optimizer = layout.sharding != Sharding::kNone;
  plan.parameters = share(values, parameters, shards);
  plan.gradients = share(values, gradients, shards);
  plan.optimizer = share(values * static_cast<double>(input.optimizer_states), optimizer, shards);
  if (input.average) plan.average = share(values, optimizer, shards);

  const double steps =
      input.recompute_steps ? 1.0 : static_cast<double>(std::max<int64_t>(1, input.rollout));
  const double kept = static_cast<double>(stage.in_flight) * steps;
  plan.features = kept * cost.features.saved;
  plan.encoder = kept * cost.encoder.saved;
  for (const PartCost* part : cost.between_mappers())
    plan.processor += kept * part->saved;
  plan.decoder = kept * cost.decoder.saved;
  plan.output = kept * cost.output.saved;
  plan.working = cost.peak - cost.saved();

  const Layout::Pieces pieces = layout.pieces(values, input.machine.ranks_per_node);
  const double bucket = layout.bucket_mb > 0.0 || pieces.count > 1.0 ? pieces.largest_bytes : 0.0;
  // Whole parts that are gathered, the present one and the next; gradients before they are shared.
  if (parameters) plan.communication += 2.0 * cost.largest_part * weight;
  if (gradients)
    plan.communication += !parameters && bucket > 0.0 ? bucket : cost.largest_part * weight;
  if (layout.compression != Compression::kNone) {
    const double piece = bucket > 0.0 ? bucket : values;
    plan.communication += layout.compression == Compression::kPowerSgd ? values : 0.5 * piece;
  }
  // True of a bucket that cards of one host sum by copies
  // (parallel/backends/copy_reduction.h).
  const bool copied = network.gpu && layout.holders() > 1 && !optimizer &&
                      layout.compression == Compression::kNone &&
                      layout.ranks() <= input.machine.ranks_per_node;
  constexpr double kMostRoom_bytes = 4.0 * (1 << 24);
  if (copied && pieces.count > 1.0) plan.communication += std::min(bucket, kMostRoom_bytes);
  double largest_transfer = 0.0;
  for (const PlacedPart& p : placed_parts(cost, rows)) {
    for (const SourceTransfer& t : p.part.transfers) {
      largest_transfer = std::max(
          largest_transfer, t.row_bytes * static_cast<double>(p.edges.sent + p.edges.received));
    }
    for (const AttentionExchange& e : p.part.exchanges)
      largest_transfer = std::max(largest_transfer, e.sent + e.received);
  }
  plan.communication += largest_transfer;

  plan.graph = graph_bytes(rows, stage, network);

  constexpr double kFloat = 4.0;  // batches are fp32
  const double batch = static_cast<double>(input.batch_size * input.batch_times * rows.data *
                                           input.dataset_variables) *
                       kFloat;
  const double on_device = network.gpu ? 2.0 : 1.0;
  const bool reads = stage.encoder || stage.decoder;
  plan.batch = reads ? on_device * batch : 0.0;
  plan.host_inputs = kept * cost.on_host();
  plan.host_batches = reads ? static_cast<double>(input.prefetch_batches) * batch : 0.0;
  return plan;
}

}  // namespace aifs::plan
