// SPDX-License-Identifier: Apache-2.0
// One optimiser step on batches that are in memory: zero gradients, forecast and loss, backward
// pass, clip, update. It owns what a step changes besides the weights: gradients on their way, the
// optimiser's moments, the average of the weights, the loss scale, recorded CUDA graphs.
//
//   start(step)                    gradients are zero
//   start_pass(batch, pass)        ┐ for each batch of the step (run_pass() does these)
//   forward()      -> loss         │
//   backward(loss, pass)           ┘ adds gradients; the last one reduces them over ranks
//   end_passes()
//   finish_gradients() -> finite
//   update(lr)                     clips and steps, unless gradients are not finite
//   finish(updated)
//
// run() does all of it. Between the phases a caller may agree with other ranks (train/trainer.h).
// Everything is collective over the ranks that share a sample or hold the same parameters.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/loader/data_loader.h"
#include "parallel/process_mesh.h"
#include "train/loss/loss_setup.h"
#include "train/options.h"
#include "train/output/checkpoint.h"
#include "train/output/part_timer.h"
#include "train/recorded_pass.h"
#include "train/rollout.h"
#include "train/sharding/gradient_reducer.h"

namespace aifs::train {

// One of the datasets of a network, as its loss sees it.
struct StepDataset {
  const data::VariableTable& variables;
  LossPtr loss;
  NodeSlice loss_nodes = {};    // this rank's nodes among those of its model group
  at::Tensor output_mask = {};  // (n) bool of this rank's nodes; none: the network decides all
};

// The parts that a step works on; all outlive the TrainingStep.
struct StepParts {
  model::ParameterSet& parameters;
  const model::EncoderProcessorDecoder& network;
  std::vector<StepDataset> datasets;  // in the order of the network
  Window window = {};
  const parallel::ProcessMesh& mesh;
  at::Device device = at::kCPU;
};

struct StepOptions {
  // Read of it: precision, accumulation, accumulate_batches, cuda_graph, rollout.recompute.
  TrainOptions train = {};
  // Without its learning rates, which come with each update.
  OptimizerOptions optimizer = {};
  ShardingOptions sharding = {};
  ReductionOptions reduction = {};
  bool one_host = false;  // has all ranks
  uint64_t seed = 0;      // of the noise of networks that draw some, and of PowerSGD
};

// One pass forward and backward, over one batch.
struct StepPass {
  int64_t rollout = 1;                     // forecast steps
  int64_t batches = 1;                     // of the step that the batch belongs to
  bool last = true;                        // of these batches
  std::array<uint32_t, 2> place = {0, 0};  // epoch of the batch and its number: the noise's seed
};

// Names and patterns of what a step does not update: what is frozen, and beside adapters all that
// they do not train.
std::vector<std::string> untrained(const model::ParameterSet& parameters,
                                   const OptimizerOptions& options);

// One batch for each dataset, of the same dates.
using Batches = std::vector<data::Batch>;

class TrainingStep {
 public:
  // Freezes parameters, makes the optimiser and its average; may move the flat gradients. Throws
  // ConfigError for options that do not go together.
  TrainingStep(const StepOptions& options, const StepParts& parts);
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  // Before the first step, after weights were loaded: keeps only this rank's part of what is
  // sharded, and lets passes be recorded as CUDA graphs. Collective over all ranks.
  void begin();

  // `step` counts from 0.
  void start(int64_t step);
  // Fetches what the pass needs first, moves the batch to the device, and records the pass if it is
  // to be. `batch` outlives forward(). Collective over all ranks where passes are recorded.
  void start_pass(const Batches& batch, const StepPass& pass);
  // Returns the mean loss over the forecast steps of the pass, summed over datasets: a scalar, or
  // an undefined tensor on pipeline stages that have no loss.
  at::Tensor forward();
  // The number in a loss that is defined: waits for the device.
  double value_of(const at::Tensor& loss);
  // Adds the gradients of what forward() gave; of nothing if that does not depend on parameters.
  void backward(const at::Tensor& loss, const StepPass& pass);
  // In place of the rest of a backward() that has thrown: the gradients of all ranks mean nothing.
  void abandon_pass() { reducer_->abandon_pass(); }
  void end_passes() { shards_->release_all(); }
  // Runs a pass, from start_pass() to backward(). Returns the mean loss over all ranks; if that is
  // not finite, no rank adds gradients. Collective over all ranks, none of which is a stage of a
  // pipeline.
  double run_pass(const Batches& batch, const StepPass& pass);
  // Takes the loss scale out of the gradients. Returns whether this rank's are finite.
  bool finish_gradients();
  // Clips, updates weights and average, and gives the weights to the other ranks. Returns the norm
  // of the gradients before clipping if they are clipped by norm, else 0.
  double update(double lr);
  // Ends the step: adapts the loss scale. `updated` is the same on all ranks.
  void finish(bool updated);

  struct Result {
    double loss = 0.0;  // mean over the batches and replicas, before the update
    double gradient_norm = 0.0;
    bool updated = true;  // false: loss or gradients were not finite on some rank
  };
  // A whole step on these batches, each with forecasts of `rollout` steps. Collective over all
  // ranks, none of which is a stage of a pipeline.
  Result run(int64_t step, const std::vector<Batches>& batches, int64_t rollout, double lr);

  // Takes weights, moments and average from a checkpoint, on a rank that share() then takes them
  // from. Throws DataError if it does not fit. Local.
  void load(const CheckpointInfo& checkpoint);
  // Gives all ranks the weights, and if the run is `resumed` the optimiser's state, of the first
  // rank that has the same parameters. Collective over all ranks.
  void share(bool resumed);

  // Fields of a batch as the network takes them: on its device, in the type of its weights.
  std::vector<at::Tensor> values_of(const Batches& batch) const;
  // Forecasts such fields as forward() does, and shows each step instead of its loss.
  void forecast(const std::vector<at::Tensor>& values, const StepPass& pass,
                const std::function<void(const ForecastStep&)>& visit) const;

  // True if the pass at hand is a recorded one.
  bool is_recorded() const { return recorded_ != nullptr; }
  // Frees recorded passes: kernels are launched one by one from now on.
  void stop_recording() {
    recorder_.stop();
    recorded_ = nullptr;
  }
  // True while update() changes the weights.
  bool is_updating() const { return is_updating_; }
  // True if passes of this rank need no other rank, but for sums of gradients.
  bool works_alone() const;
  // Returns the parts of values and gradients that this rank owns.
  std::vector<OwnPart> own_parts() const;
  ParameterShards& shards() const { return *shards_; }
  const Forecaster& forecaster() const { return forecaster_; }
  const AdamW& optimizer() const { return *optimizer_; }
  // Null: the weights are not averaged.
  const WeightAverage* average() const { return average_ ? &*average_ : nullptr; }
  LossScale& loss_scale() { return loss_scale_; }
  const GradientReducer& reducer() const { return *reducer_; }
  PartTimer& timer() { return timer_; }

 private:
  void seed_noise(const StepPass& pass) const;
  at::Tensor loss_of(const Batches& batch, const std::vector<at::Tensor>& values,
                     const StepPass& pass) const;
  void add_gradients(const at::Tensor& loss, const StepPass& pass);
  // Returns the number that the gradients of a batch are divided by.
  int64_t divisor(const StepPass& pass) const;

  StepOptions options_;
  StepParts parts_;
  Forecaster forecaster_;
  std::unique_ptr<ParameterShards> shards_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<AdamW> optimizer_;
  std::optional<WeightAverage> average_;
  std::optional<Adapters> adapters_;  // none: weights themselves are trained
  LossScale loss_scale_;
  OptimizerState loaded_;  // of a checkpoint, until all ranks have it, on those that read it
  PassRecorder recorder_;
  PartTimer timer_;
  bool is_updating_ = false;
  // State of the pass at hand, from start_pass() to forward().
  const Batches* batch_ = nullptr;
  StepPass pass_;
  std::vector<at::Tensor> values_;
  RecordedPass* recorded_ = nullptr;
};

}  // namespace aifs::train
