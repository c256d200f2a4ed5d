// SPDX-License-Identifier: Apache-2.0
// The training loop: batches to steps, and the cadence of logging, validation and checkpoints.
// It owns the loop state and the optimiser; data, network and loss are built by the caller.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/fields/bad_input.h"
#include "data/loader/joint_feed.h"
#include "data/loader/sampler.h"
#include "parallel/process_mesh.h"
#include "parallel/together.h"
#include "train/feed_watch.h"
#include "train/loss/loss_setup.h"
#include "train/output/checkpoint.h"
#include "train/output/part_timer.h"
#include "train/pipeline_losses.h"
#include "train/pipeline_schedule.h"
#include "train/recorded_pass.h"
#include "train/run_log.h"
#include "train/sharding/gradient_reducer.h"
#include "train/validation.h"

namespace aifs::train {

// One more dataset of a run, of the same dates as the first, with cells and variables of its own.
struct FurtherDataset {
  std::string name;  // for messages
  const data::SampleSource& source;
  const data::VariableTable& variables;
  data::LoaderOptions loading;
  LossPtr loss;
  NodeSlice loss_nodes = {};
};

// What the loop works on; everything outlives the Trainer.
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
  bool resident_data = false;                 // every batch is the first one, read once
  // For errors of one rank among several (parallel::together()).
  parallel::FailureHandling failure = {[](const std::exception&) { return 1; },
                                       [](const std::exception&) {}};
};

enum class Outcome { kFinished, kInterrupted };

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const TrainerParts& parts);
  ~Trainer();

  // Takes weights, moments and position from a checkpoint. Throws DataError if it does not fit.
  // Local to one rank; share_state() then gives all ranks the position of the main rank, and the
  // tensors of the first rank that holds the same.
  void load(const CheckpointInfo& checkpoint);
  // Collective. `resumed` is what the main rank says.
  void share_state(bool resumed);

  // Trains to the end, or until should_stop() or the time limit. Throws NumericalError on all ranks
  // if loss or gradients are not finite on any (unless such steps are to be skipped), naming step,
  // dates, the first bad value and the last checkpoint; the batch is dumped. Data that one rank
  // cannot read end the run on all: that rank reports it, and FailedTogether is thrown (a single
  // rank throws the error itself), as does any error in the passes of a rank that shares no
  // samples, slices or values with others. Where an error leaves the weights finite, a checkpoint
  // of the last whole step is written first. Collective over all ranks; only the main one writes
  // logs and checkpoints.
  Outcome run();

  const LoopState& state() const { return state_; }

 private:
  struct StepFigures;
  enum class EpochEnd { kDone, kLimit, kStop };
  using Batches = std::vector<data::Batch>;  // of the same dates, one for each dataset

  void start_logs(bool resumed);
  EpochEnd run_epochs();
  EpochEnd run_epoch();
  // `start`: where the epoch begins in this process.
  std::vector<data::BatchRequest> requests_of_epoch(const LoopState& start) const;
  // Throws on all ranks unless those that share a sample are about to read the same dates.
  // Collective.
  void check_same_dates(const LoopState& start,
                        const std::vector<data::BatchRequest>& requests) const;
  // Gives the feed the batches of the next epoch, if there will be one: reading goes on while an
  // epoch ends, and stops where training does. Collective.
  void feed_next_epoch();
  // The number of batches that are left of the epoch at hand; the feed has them, and those of the
  // next epoch. Collective.
  int64_t begin_epoch();
  void end_feed();
  // The next batch. Data that cannot be read, or a wish to stop while waiting for them, are noted
  // in the figures; a batch of zeros takes the place of the missing one, so that this rank can take
  // part in what all ranks do before they hear of it.
  void take_batch(StepFigures& figures);
  // The first batch of the epoch at hand, on the device.
  Batches first_batch(int64_t rollout) const;
  // Ends a step that lacks a batch on some rank: the position goes back to where the step began.
  // Throws unless the reason is a wish to stop.
  EpochEnd give_step_up(const StepFigures& figures);
  // Throws the error of one rank on all. `error` is null where another rank has one.
  void fail_together(const std::exception_ptr& error) const;
  // Writes a checkpoint of the last whole step, if this run has made one since the last checkpoint
  // and its weights are finite; no other is removed for it. Never throws. Collective.
  void save_before_error();
  // Adds the gradients of the next batches. Where the loss of any rank is not finite, none adds
  // any or, in a pipeline, the step is not finite.
  void accumulate_gradients(StepFigures& figures);
  // What a backward pass begins with; undefined: there is none.
  at::Tensor forward_pass(StepFigures& figures, bool last);
  void backward_pass(const at::Tensor& total, StepFigures& figures, bool last);
  // Whether passes of this rank need no other rank, but for sums of gradients.
  bool works_alone() const;
  // Runs a pass. False if it has thrown, which figures note, so that all ranks hear of it where
  // they meet next; where ranks work together in it, it throws: they cannot.
  bool tried(const std::function<void()>& pass, StepFigures& figures) const;
  // The loss of this replica, which all its ranks know, or of another one is not finite. All ranks
  // call it.
  void note_bad_loss(StepFigures& figures, double loss);
  // On the losses of a step, which the last stage knows.
  void agree_in_pipeline(StepFigures& figures);
  // The sum over datasets. Undefined on stages that have no loss.
  at::Tensor loss_of(const Batches& batch, const std::vector<at::Tensor>& values, int64_t rollout);
  std::vector<at::Tensor> values_of(const Batches& batch) const;  // on the device
  void add_gradients(const at::Tensor& loss, int64_t rollout, int64_t divisor, bool last);
  // What the network draws depends on the position in training and the replica alone.
  void seed_noise() const;
  // Adds a batch to the figures of all ranks: its loss, its samples, and the wish to stop. Says
  // whether the loss is finite on all.
  bool agree(StepFigures& figures, double loss, int64_t samples) const;
  // Nothing but to note it in the figures if a pass has failed on some rank.
  void update_weights(StepFigures& figures);
  // Divides the gradients of a step of so many batches.
  int64_t gradient_divisor(int64_t batches) const;
  // Says what is not finite and where, and writes the batch to a folder. All ranks of a replica
  // call it, or none: the network runs again, with all values there (ParameterShards::fetch_all()).
  NonfiniteReport describe_nonfinite(const std::string& what, int64_t rollout) const;
  // The first value of the batch at hand, as it is stored, that no network can work with.
  std::optional<data::BadInput> bad_input(int64_t rollout) const;
  std::string find_nonfinite(const Batches& batch, int64_t rollout) const;
  // Throws unless the step may be skipped, which all ranks decide alike, after a checkpoint of the
  // last whole step. The report is empty where another rank has found it. Collective.
  void skip_or_fail(const NonfiniteReport& report);
  // What a user can do about weights that gave such a step.
  std::string way_out(int64_t before) const;
  void record(const StepFigures& figures);
  // Says once if reading does not keep up.
  void watch_feed(const StepFigures& figures);
  // True if it was left because somebody wants to stop: the same on all ranks.
  bool validate();
  ValidationResult validation_result();
  // True if a validation was due at the step that a run is resumed at, and has left no line.
  bool owes_validation() const;
  bool wants_to_stop() const;  // this rank
  // A checkpoint that is not required may fail: training goes on without it. Weights that are not
  // finite are a NumericalError: they would shadow the last checkpoint that can be resumed.
  // Collective.
  void checkpoint(bool required) { checkpoint(required, options_.checkpoint.keep); }
  void checkpoint(bool required, int64_t keep);
  // On the main rank; whether it is there. Removes all but the `keep` newest (0: none).
  bool write(const CheckpointTensors& tensors, bool required, int64_t keep);
  bool at_step_limit() const;
  bool at_epoch_limit() const;
  bool out_of_time() const;

  std::vector<OwnPart> own_parts() const;
  // Name of a dataset where there are several, for messages: " of 'era5'".
  std::string of_dataset(size_t dataset) const;
  std::vector<data::FeedSource> feed_sources() const;
  std::vector<const data::DatasetInfo*> infos() const;
  const data::DatasetInfo& info(size_t dataset = 0) const {
    return datasets_[dataset].source.dataset->info();
  }

  TrainerOptions options_;
  TrainerParts parts_;
  std::vector<FurtherDataset> datasets_;  // all, the first one included
  Forecaster forecaster_;
  std::unique_ptr<ParameterShards> shards_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<AdamW> optimizer_;
  OptimizerState loaded_;  // of a checkpoint, until all ranks have it, on those that read it
  std::optional<WeightAverage> average_;
  LoopState state_;
  LossScale loss_scale_;
  std::unique_ptr<data::JointFeed> feed_;  // of all epochs; none with resident data
  LoopState next_fed_;                     // the first epoch that the feed has not got
  std::deque<int64_t> fed_epochs_;   // batches of the epochs that it has and that have not begun
  std::deque<int64_t> fed_samples_;  // of the batches that it has and that were not taken
  double waited_before_s_ = 0.0;     // by the feed, until the step at hand
  Batches batch_;                    // the one at hand
  Batches resident_;                 // the only one, with resident data
  std::optional<FeedWatch> feed_watch_;
  std::array<uint32_t, 2> batch_place_{};  // its epoch and number
  PassRecorder recorder_;
  RecordedPass* recorded_ = nullptr;  // the pass at hand, if it is recorded
  int64_t skipped_in_a_row_ = 0;
  int64_t first_step_ = 0;        // steps done before this process
  int64_t step_first_batch_ = 0;  // of the epoch: where the step at hand began
  bool updating_ = false;         // weights are between two steps
  bool weights_lost_ = false;     // averaged ones stand in for the live ones
  PartTimer timer_;
  std::unique_ptr<RunLog> log_;
  int64_t last_checkpoint_step_ = -1;
  int64_t last_validation_step_ = -1;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace aifs::train
