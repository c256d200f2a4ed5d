// SPDX-License-Identifier: Apache-2.0
// The training loop: for each step run its batches, update, log, validate, save. Its parts are
// objects of their own: batches (epoch_feed.h), passes (step_passes.h), the step itself
// (training_step.h), numbers that are not finite (nonfinite_policy.h), when things are due
// (cadence.h), checkpoints (run_checkpoints.h) and logs (run_log.h). Data, network and loss are
// built by the caller.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/together.h"
#include "train/cadence.h"
#include "train/epoch_feed.h"
#include "train/nonfinite_policy.h"
#include "train/run_checkpoints.h"
#include "train/run_log.h"
#include "train/scores/early_stop.h"
#include "train/step_passes.h"
#include "train/training_step.h"
#include "train/validation.h"

namespace aifs::train {

// One more dataset of a run, of the same dates as the first, with cells and variables of its own.
using FurtherDataset = TrainingDataset;

// Describes what the loop works on; everything outlives the Trainer.
struct TrainerParts {
  std::string name = {};  // of the first dataset, where there are several
  const data::SampleSource& source;
  const data::VariableTable& variables;
  Window window;
  data::SamplerOptions sampling;
  data::LoaderOptions loading;
  model::ParameterSet& parameters;
  const model::EncoderProcessorDecoder& network;
  LossPtr loss;
  NodeSlice loss_nodes = {};               // this rank's nodes among those of its model group
  at::Tensor output_mask = {};             // as that of a TrainingDataset
  const Validation* validation = nullptr;  // none: training without validation
  const parallel::ProcessMesh& mesh;
  at::Device device = at::kCPU;
  std::vector<FurtherDataset> further = {};  // in the order of the network
};

struct TrainerOptions {
  TrainOptions train;
  OptimizerOptions optimizer;
  CheckpointOptions checkpoint;
  LogOptions log;
  ProfileOptions profile;
  ShardingOptions sharding;
  ReductionOptions reduction;
  bool one_host = false;  // has all ranks
  fs::path run_dir;
  CheckpointMeta checkpoint_meta;  // time_utc is filled in when one is written
  // Asked in every step, between forecasts and while waiting for data; true: checkpoint and leave.
  std::function<bool()> should_stop;
  std::function<void(int64_t)> at_step = {};  // told the number of every step as it begins
  std::chrono::steady_clock::time_point program_start = std::chrono::steady_clock::now();
  Operations operations = {};
  std::optional<std::vector<std::string>> gpus = {};  // as in RunLogSetup
  bool resident_data = false;                         // every batch is the first one, read once
  // For errors of one rank among several (parallel::together()).
  parallel::FailureHandling failure = {[](const std::exception&) { return 1; },
                                       [](const std::exception&) {}};
};

// How a run has ended: at its limit, by a wish to stop, or as validations gained nothing any more.
enum class Outcome { kFinished, kInterrupted, kStoppedEarly };

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const TrainerParts& parts);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Takes weights, moments and position from a checkpoint. Throws DataError if it does not fit.
  // Local to one rank; share_state() then gives all ranks the position of the main rank, and the
  // tensors of the first rank that holds the same.
  void load(const CheckpointInfo& checkpoint);
  // Collective. `resumed` is what the main rank says.
  void share_state(bool resumed);

  // Trains to the end, or until should_stop() or the time limit, or until validations gain nothing
  // any more (train.early_stop), which all ranks decide alike. Throws NumericalError on all ranks
  // if loss or gradients are not finite on any (unless such steps are to be skipped), naming step,
  // dates, the first bad value and the last checkpoint; the batch is dumped. Data that one rank
  // cannot read end the run on all: that rank reports it, and FailedTogether is thrown (a single
  // rank throws the error itself), as does any error in the passes of a rank that shares no
  // samples, slices or values with others. Where an error leaves the weights finite, a checkpoint
  // of the last whole step is written first. Collective over all ranks; only the main one writes
  // logs and checkpoints.
  Outcome run();

  const LoopState& state() const { return state_; }

  // For measurements of single steps, without run(): a step, the rate of the next one, and the
  // first batch of the epoch at hand on the device, long enough for `rollout` forecast steps.
  TrainingStep& step() { return step_; }
  double next_rate() const { return learning_rate(options_.optimizer.schedule, state_.step); }
  Batches first_batch(int64_t rollout) const { return feed_.first_batch(state_, rollout); }

 private:
  enum class EpochEnd { kDone, kLimit, kStop };

  // Writes how the run begins, and ends its logs.
  void start_logs(bool resumed);
  void end_logs(Outcome outcome);
  void note_pauses();
  // Counts validations of the step that a run is resumed at. Collective.
  void take_up_count();
  EpochEnd run_epochs();
  EpochEnd run_epoch();
  // Nothing but to note it in the figures if a pass has failed on some rank.
  void update_weights(StepFigures& figures);
  // Writes what a step has found out.
  void record(const StepFigures& figures);
  // Saves and validates where that is due; the wish to stop is noted in the figures.
  void save_and_validate(StepFigures& figures);
  void go_to_next_epoch();

  // Ends a step that lacks a batch on some rank: the position goes back to where the step began.
  // Throws unless the reason is a wish to stop.
  EpochEnd give_step_up(const StepFigures& figures);
  // Throws unless the step may be skipped, which all ranks decide alike, after a checkpoint of the
  // last whole step. The report is empty where another rank has found it. Collective.
  void skip_or_fail(const NonfiniteReport& report, const StepFigures& figures);
  // Throws the error of one rank on all. `error` is null where another rank has one.
  void fail_together(const std::exception_ptr& error) const;
  // Writes a checkpoint of the last whole step, if this run has made one since the last checkpoint
  // and its weights are finite; no other is removed for it. Never throws. Collective.
  void save_before_error();
  void save(bool required);

  // True if it was left because somebody wants to stop: the same on all ranks.
  bool validate();
  ValidationResult validation_result();
  // Keeps the checkpoint if its scores are among the best, and counts validations without a gain.
  // Collective.
  void judge(const ValidationResult& result);
  // True if validations have gained nothing for too long.
  bool stops_early() const {
    return train::stops_early(options_.train.early_stop, state_.stop_count);
  }
  // True if a validation was due at the step that a run is resumed at, and has left no line.
  bool owes_validation() const;

  TrainerOptions options_;
  TrainerParts parts_;
  std::vector<TrainingDataset> datasets_;  // all, the first one included
  LoopState state_;
  Cadence cadence_;
  TrainingStep step_;
  EpochFeed feed_;
  NonfinitePolicy nonfinite_;
  StepPasses passes_;
  RunCheckpoints checkpoints_;
  std::unique_ptr<RunLog> log_;   // on the main rank
  int64_t first_step_ = 0;        // steps done before this process
  int64_t step_first_batch_ = 0;  // of the epoch: where the step at hand began
  bool weights_lost_ = false;     // averaged ones stand in for the live ones
  int64_t last_validation_step_ = -1;
};

}  // namespace aifs::train
