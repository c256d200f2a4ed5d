// SPDX-License-Identifier: Apache-2.0
// The training loop: batches to steps, and the cadence of logging, validation and checkpoints.
// It owns the loop state and the optimiser; data, network and loss are built by the caller.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/sampler.h"
#include "train/checkpoint.h"
#include "train/loss_setup.h"
#include "train/metrics_log.h"
#include "train/part_timer.h"
#include "train/progress.h"
#include "train/tensorboard.h"
#include "train/validation.h"

namespace aifs::train {

// What the loop works on; everything outlives the Trainer.
struct TrainerParts {
  const data::SampleSource& source;
  const data::VariableTable& variables;
  Window window;
  data::SamplerOptions sampling;
  data::LoaderOptions loading;
  model::ParameterSet& parameters;
  const model::EncoderProcessorDecoder& network;
  LossPtr loss;
  NodeSlice loss_nodes = {};
  const Validation* validation = nullptr;  // none: training without validation
  at::Device device = at::kCPU;
  int64_t rank = 0;  // of this process, for messages
};

struct TrainerOptions {
  TrainOptions train;
  OptimizerOptions optimizer;
  LossOptions loss;
  CheckpointOptions checkpoint;
  LogOptions log;
  ProfileOptions profile;
  fs::path run_dir;
  CheckpointMeta checkpoint_meta;     // time_utc is filled in when one is written
  std::function<bool()> should_stop;  // asked after every step; true: checkpoint and leave
};

enum class Outcome { kFinished, kInterrupted };

class Trainer {
 public:
  Trainer(const TrainerOptions& options, const TrainerParts& parts);
  ~Trainer();

  // Takes weights, moments and position from a checkpoint. Throws DataError if it does not fit.
  void resume(const CheckpointInfo& checkpoint);

  // Trains to the end, or until should_stop() or the time limit. Throws NumericalError if loss or
  // gradients are not finite (unless such steps are to be skipped), naming step, dates, the first
  // bad value and the last checkpoint; the batch is dumped.
  Outcome run();

  const LoopState& state() const { return state_; }

 private:
  struct StepFigures;
  struct Logs;
  enum class EpochEnd { kDone, kLimit, kStop };

  EpochEnd run_epoch();
  std::vector<data::BatchRequest> requests_of_epoch(int64_t rollout) const;
  double accumulate_gradients(const data::Batch& batch, int64_t rollout);
  void update_weights(StepFigures& figures);
  // What is not finite and where, with the batch in a folder; throws unless the step may be
  // skipped.
  void handle_nonfinite(const std::string& what, int64_t rollout);
  std::string find_nonfinite(const data::Batch& batch, int64_t rollout) const;
  void record(const StepFigures& figures);
  void validate();
  ValidationResult validation_result();
  // A checkpoint that is not required may fail: training goes on without it.
  void checkpoint(bool required);
  bool at_step_limit() const;
  bool out_of_time() const;

  TrainerOptions options_;
  TrainerParts parts_;
  Forecaster forecaster_;
  AdamW optimizer_;
  std::optional<WeightAverage> average_;
  LoopState state_;
  LossScale loss_scale_;
  const data::Batch* batch_ = nullptr;  // the one at hand
  bool skip_step_ = false;              // a loss of this step was not finite
  int64_t skipped_in_a_row_ = 0;
  PartTimer timer_;
  std::unique_ptr<Logs> logs_;
  std::unique_ptr<Progress> progress_;
  int64_t last_checkpoint_step_ = -1;
  int64_t last_validation_step_ = -1;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace aifs::train
