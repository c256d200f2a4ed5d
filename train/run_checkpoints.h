// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run, from all ranks to the main rank's file.
#pragma once

#include <optional>

#include "train/output/best_checkpoints.h"
#include "train/run_log.h"
#include "train/training_step.h"

namespace aifs::train {

// Everything it refers to outlives the checkpoints.
struct RunCheckpointsSetup {
  TrainingStep& step;
  const model::ParameterSet& parameters;
  const parallel::ProcessMesh& mesh;
  fs::path run_dir;
  CheckpointMeta meta;  // time_utc is filled in when one is written
  KeepBestOptions keep_best = {};
};

class RunCheckpoints {
 public:
  explicit RunCheckpoints(const RunCheckpointsSetup& setup) : setup_(setup) {}

  // Finds the best ones of an earlier part of the run; -1: a new run. Before the first is written.
  void begin(int64_t resume_step);

  // Writes one of the last whole step, unless the last one is of it, and removes all but the `keep`
  // newest (0: none) and the best. One that is not `required` may fail: training goes on without
  // it. Throws NumericalError if weights are not finite: they would shadow the last checkpoint that
  // can be resumed. `log` is null on other than the main rank. Collective over all ranks.
  void write(const LoopState& state, bool required, int64_t keep, RunLog* log);

  // Keeps the one of the last whole step, which is written if it is not there, if its score is
  // among the best; `score` is what the main rank says. Fails as one that is not required.
  // Collective over all ranks.
  void keep_if_best(const LoopState& state, double score, int64_t keep, RunLog* log);

  // The step of the last one that was written or resumed from; -1: there is none.
  int64_t last_step() const { return last_step_; }
  void resumed_at(int64_t step) { last_step_ = step; }

 private:
  // On the main rank; whether it is there.
  bool write_file(const CheckpointTensors& tensors, const LoopState& state, bool required,
                  int64_t keep);

  RunCheckpointsSetup setup_;
  std::optional<BestCheckpoints> best_;  // on the main rank, if any are to be kept
  int64_t last_step_ = -1;
};

}  // namespace aifs::train
