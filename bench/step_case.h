// SPDX-License-Identifier: Apache-2.0
// A case of `aifs-bench step`: what is computed, read from its name, and the parts it is made of.
#pragma once

#include <string>
#include <vector>

#include "data/fields/variables.h"
#include "graph/base/graph.h"
#include "model/network/encoder_processor_decoder.h"
#include "parallel/process_mesh.h"
#include "train/loss/loss.h"
#include "train/options.h"

namespace aifs::bench {

// "gnn-512-n320-tri6-bf16": kind of the network (gnn; gt, graph transformers of 16 heads;
// transformer, between mappers as in gt a processor that attends in windows of 512), channels, data
// grid, hidden mesh, precision (fp32, tf32, bf16), and perhaps the memory it is to fit in (-80gib,
// -37gib, -18gib, -16gib). Everything else is that of
// the published measurements of Anemoi: 16 layers, 88 prognostic variables, 13 forcings and 1
// diagnostic variable, two times in, 8 learnt features per node and edge, one ReLU bound, batch 1.
struct StepCase {
  std::string name;
  model::BlockKind mappers = model::BlockKind::kGnn, processor = model::BlockKind::kGnn;
  std::string grid;
  int64_t refinement = 0;
  int64_t channels = 0;
  int64_t layers = 16;
  model::RecomputePolicy recompute_mappers = model::RecomputePolicy::kNone;
  model::RecomputePolicy recompute_processor = model::RecomputePolicy::kNone;
  int64_t mapper_chunks = 1;   // of the decoder
  int64_t encoder_chunks = 0;  // 0: a quarter of them
  int64_t groups = 0;          // of the processor's layers, run again together; 0: one by one
  int64_t edge_ranges = 1;     // of the processor
  int64_t offload = 0;
  int64_t rollout = 1;  // steps of a forecast; several are run again one by one
  bool recompute_steps = true;
  model::KernelChoice kernels = model::KernelChoice::kAuto;
  train::Precision precision = train::Precision::kFp32;

  // Throws ConfigError for a name that does not read so.
  static StepCase parse(const std::string& name);

  model::ModelOptions model_options() const;
};

// The variables of every case: what the network is told of them, and as columns of a dataset.
model::FieldLayout step_layout();
data::VariableTable step_variables();

// The graph of a case: cut-off 0.6, multi-scale mesh, three nearest. Kept as a file in
// `cache_folder` if that is not empty.
graph::Graph step_graph(const StepCase& step_case, const std::string& cache_folder);

// How ranks share the work of a step: replicas of a sample divided over a model group.
class StepShares {
 public:
  // `mesh` outlives the shares.
  StepShares(const parallel::ProcessMesh& mesh, const StepCase& step_case,
             const graph::Graph& graph);

  const parallel::ProcessMesh& mesh() const { return *mesh_; }
  bool divided() const { return mesh_->sizes().model > 1; }
  // This rank's data nodes, first and number.
  int64_t first_node() const;
  int64_t num_nodes() const;
  // Data nodes of each rank of the model group.
  const parallel::Counts& nodes_per_rank() const { return nodes_per_rank_; }
  // Empty if the sample is not divided.
  const graph::GraphPartition& partition() const { return partition_; }

 private:
  const parallel::ProcessMesh* mesh_;
  parallel::Counts nodes_per_rank_;
  graph::GraphPartition partition_;
};

// Operations of a training step or of its forward pass, in matrix products of one sample.
struct StepOperations {
  double plain = 0.0;     // as a model with whole products counts: three times its forward pass
  double executed = 0.0;  // split products, what is run again
};
StepOperations step_operations(const StepCase& step_case, const graph::Graph& graph);

// Squared errors weighted by area and by variable, in fp32.
train::PointwiseLoss step_loss(const graph::Graph& graph, const at::Device& device,
                               const StepShares& shares);

// The network of a case with its parameters on a device, started from a fixed seed.
struct StepNetwork {
  model::ParameterSet parameters;
  model::EncoderProcessorDecoder network;

  StepNetwork(const StepCase& step_case, const graph::Graph& graph, const at::Device& device,
              const StepShares& shares);
};

// Normalised fields as a dataset would give them, of this rank's nodes: input (1, 2, 1, n, V_in),
// truth (1, 1, 1, n, V_out), the same numbers for every device and division.
struct StepFields {
  at::Tensor input, truth;
};
StepFields step_fields(int64_t num_nodes, const at::Device& device, const StepShares& shares);

// The same of all variables and the times of a forecast, (1, 2 + rollout, 1, n, V): each time is
// the first and a bit.
at::Tensor forecast_batch(int64_t num_nodes, int64_t rollout, const at::Device& device,
                          const StepShares& shares);

}  // namespace aifs::bench
