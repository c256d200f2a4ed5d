// SPDX-License-Identifier: Apache-2.0
// The composition root: from a configuration to datasets, graph, network, loss and validation, and
// the actions of the command line on them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/run/data_parts.h"
#include "app/run/host_share.h"
#include "app/run/network_plan.h"
#include "app/run/phases.h"
#include "app/run/run_config.h"
#include "app/run/run_graph.h"
#include "app/run/saved_data.h"
#include "data/loader/buffer_pool.h"
#include "forecast/forecast_run.h"
#include "graph/base/graph.h"
#include "parallel/process_mesh.h"
#include "plan/step_plan.h"
#include "train/trainer.h"

namespace aifs::app {

// Throws ConfigError where train.validation.weights is "area" and the data nodes have none.
void check_area_weights(const graph::NodeSet& nodes);

// What is known of a training by another program, besides its weights.
struct OtherTraining {
  const NamedTensors* moments = nullptr;  // moment1/<name>, moment2/<name>; null: none
  int64_t optimizer_steps = 0;
  train::LoopState state = {};
};

// Everything a run needs, in the order it is built.
class Run {
 public:
  // The main rank opens the data and builds or loads the graph; it writes nothing but its file.
  // `saved`: of the checkpoint whose weights are wanted, if there is one; only the main rank has to
  // know. Throws ConfigError, DataError. Local to each rank; `mesh` outlives the run.
  Run(RunConfig config, const parallel::ProcessMesh& mesh, at::Device device,
      std::optional<SavedData> saved = std::nullopt);
  // Gives what was read of the dataset, and the graph or this rank's part of it, to all ranks.
  // Throws FailedTogether. Collective.
  void share();
  // Creates network, loss and validation; the other ranks open the data, too. Throws ConfigError.
  // Local to each rank.
  void build();
  // Creates the network alone, for forecasts. As build().
  void build_network();

  // The trainer of this run, at its start. Uses the parts of the run, which outlives it.
  // Collective.
  std::unique_ptr<train::Trainer> make_trainer(const std::function<void(int64_t)>& at_step = {});
  // Trains (from a checkpoint if the main rank has one). Collective.
  train::Outcome train(const std::optional<train::CheckpointInfo>& resume_from,
                       const std::function<void(int64_t)>& at_step = {});
  // Takes the weights of a checkpoint; averaged ones if the configuration averages. Throws
  // DataError if it is of another model or graph. Local.
  void load_weights(const train::CheckpointInfo& checkpoint, WeightUse use = WeightUse::kScore);
  // Starts a run from weights of another program: copies the tensors of `weights` whose names start
  // with `prefix` and writes them as a checkpoint of this run, of step 0 unless more is known of
  // the training. Returns its path. Local.
  fs::path adopt_weights(const NamedTensors& weights, const std::string& prefix,
                         const OtherTraining& training = {});
  // Scores the weights of a checkpoint; prints a table and writes
  // <run.dir>/validation-step-<n>.json. Collective; only the main rank prints and writes.
  void validate(const train::CheckpointInfo& checkpoint);

  // Returns what forecasts of this run take its datasets for; and what makes them. They refer to
  // the run.
  forecast::ForecastSetup forecast_setup() const;
  train::Forecaster make_forecaster(bool with_truth) const;

  const RunConfig& config() const { return config_; }
  const at::Device& device() const { return device_; }
  // All datasets; the first, which is the only one of most runs.
  const std::vector<DataParts>& datasets() const { return data_; }
  const DataParts& data() const { return data_.front(); }
  const GraphParts& graph() const { return graph_; }
  // The network's options, with what model.memory_budget adds to them.
  const model::ModelOptions& model() const { return fitted_; }
  const Phases& phases() const { return phases_; }
  const model::ParameterSet& parameters() const { return *parameters_; }
  const model::EncoderProcessorDecoder& network() const { return *network_; }
  const train::Loss& loss(size_t dataset = 0) const { return *losses_[dataset]; }
  // (N) bool, true for the cells of a dataset that the network decides; undefined: all.
  const at::Tensor& output_mask(size_t dataset = 0) const { return output_masks_[dataset]; }
  const parallel::ProcessMesh& mesh() const { return *mesh_; }
  // Returns what a step takes of a rank's memory on paper (--dry-run); nothing where there is no
  // such plan. Local to the main rank.
  std::optional<plan::MemoryPlan> planned_memory() const;

 private:
  void warn_of_graph() const;
  // True if the network is made to be trained.
  bool is_trained() const;
  // Opens the data that the main rank has opened, on the other ranks. Local.
  void open_data();
  plan::StepInput planned_step() const;
  // What a step computes on paper, and the card of log.machine; none where there is no plan.
  train::Operations operations() const;
  // Addresses of the GPUs whose figures are wanted; none: of none. Collective.
  std::optional<std::vector<std::string>> watched_gpus() const;
  // The network's options, with what model.memory_budget adds to them.
  model::ModelOptions fitted_model() const;
  train::LossPtr make_loss(size_t dataset) const;
  std::unique_ptr<train::Validation> make_validation() const;
  train::CheckpointMeta checkpoint_meta();
  // Takes the weights of a checkpoint that init.from names.
  void start_from_other_run(const train::CheckpointInfo& other);

  model::GraphTensors make_tensors(at::ScalarType dtype);
  // This rank's cells of a dataset.
  data::NodeRange cells_of(size_t dataset) const;
  // How batches of a dataset are read, into this share of data.memory_mib of all of them.
  data::LoaderOptions loading(double share_of_memory, size_t dataset) const;
  train::NodeSlice slice_of(size_t dataset) const;
  // The cells that the network decides, of this rank; undefined: all.
  at::Tensor output_mask_of(size_t dataset) const;
  // Returns what a dataset is to a validation.
  train::FurtherValidation validated(size_t dataset) const;
  std::vector<train::FurtherDataset> further_training(double share_of_memory) const;

  RunConfig config_;
  const parallel::ProcessMesh* mesh_;
  at::Device device_;
  Phases phases_;
  std::optional<SavedData> saved_;
  MachineShare machine_;
  std::shared_ptr<data::BufferPool> pool_;
  std::string opened_;  // what opening the dataset has read
  std::vector<DataParts> data_;
  GraphParts graph_;
  model::ModelOptions fitted_;
  // Counts of the data nodes of each dataset, in a row; the ranks that share a sample.
  std::vector<parallel::Counts> cells_per_rank_;
  std::unique_ptr<model::ParameterSet> parameters_;
  std::unique_ptr<model::EncoderProcessorDecoder> network_;
  std::vector<train::LossPtr> losses_;    // of each dataset
  std::vector<at::Tensor> output_masks_;  // of each dataset, (N) bool; undefined: all
  std::unique_ptr<train::Validation> validation_;
  SharedReading shared_reading_;
  train::Operations operations_;                  // on the main rank
  std::optional<std::vector<std::string>> gpus_;  // whose figures are wanted, on the main rank
};

}  // namespace aifs::app
