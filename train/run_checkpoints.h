// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training run, from all ranks to the main rank's file. Files are written by a
// thread of their own while training goes on; a rank stands still only for the copy to the host.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <optional>

#include "train/options.h"
#include "train/output/best_checkpoints.h"
#include "train/output/checkpoint_course.h"
#include "train/output/host_copies.h"
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
  CheckpointOptions options = {};
};

// Says what becomes of a checkpoint that fails, and when training goes on.
struct CheckpointWrite {
  bool required = false;     // on disk on return, or the error is thrown
  bool waits = false;        // on disk on return, or the log says why not
  bool removes_old = false;  // those that need not be kept any more
};

// The course that a run goes on with from `checkpoint`, as far as its checkpoints are in `folder`.
// Where the checkpoint does not say, those of its step and of earlier ones are taken for it.
CheckpointCourse course_until(const CheckpointInfo& checkpoint, const fs::path& folder);

class RunCheckpoints {
 public:
  explicit RunCheckpoints(const RunCheckpointsSetup& setup) : setup_(setup) {}
  // Waits for a file that is being written.
  ~RunCheckpoints();

  // The course of the run up to the checkpoint that it goes on from. On the main rank.
  void take_up(const CheckpointInfo& checkpoint);
  // Finds the best ones of an earlier part of the run; -1: a new run. Before the first is written.
  void begin(int64_t resume_step);

  // Allocates the memory of the copies, so that the first checkpoint takes no longer than others.
  // For runs that write while they train. Local.
  void prepare();

  // Writes one of the last whole step, unless the last one is of it. One that neither is required
  // nor waits is perhaps still being written on return, and may fail: training goes on without it.
  // Waits for the one before. Throws NumericalError if weights are not finite: they would shadow
  // the last checkpoint that can be resumed. `log` is null on other than the main rank. Collective
  // over all ranks.
  void write(const LoopState& state, const CheckpointWrite& how, RunLog* log);

  // Keeps the one of the last whole step, which is written if it is not there, if its score is
  // among the best; `score` is what the main rank says. Fails as one that is not required.
  // Collective over all ranks.
  void keep_if_best(const LoopState& state, double score, RunLog* log);

  // Says in the log what has become of the file that is being written, once it is known. Local.
  void report(RunLog* log);
  // Waits for that file, too. Local.
  void finish(RunLog* log);

  // The step of the last one that was written, is being written, or was resumed from; -1: there is
  // none.
  int64_t last_step() const { return last_step_; }
  void resumed_at(int64_t step) { last_step_ = written_step_ = step; }

 private:
  // A file on its way, on the main rank.
  struct Writing {
    int64_t step = 0;
    bool required = false;
    CheckpointCourse course = {};  // once it is there
    std::future<fs::path> path;
    double stood_still = 0.0;  // training, for its copies [s]
  };

  // Waits for the file that is being written; all ranks learn whether it is there. Collective.
  void settle(RunLog* log);
  // Copies the tensors of all ranks. Collective.
  CheckpointTensors gather();
  // On the main rank.
  void begin_file(CheckpointTensors tensors, const LoopState& state, const CheckpointWrite& how);

  // What stays of a course. On the main rank.
  CheckpointCourse kept_of(CheckpointCourse course) const;
  // True unless all stay.
  bool removes_any() const {
    return (best_ ? best_->keep_of(setup_.options.keep) : setup_.options.keep) > 0;
  }
  fs::path folder() const { return setup_.run_dir / "checkpoints"; }

  RunCheckpointsSetup setup_;
  CheckpointCourse course_;              // of the checkpoints that are there, on the main rank
  std::optional<BestCheckpoints> best_;  // on the main rank, if any are to be kept
  int64_t last_step_ = -1;
  int64_t written_step_ = -1;  // of the last one that is known to be on disk
  std::unique_ptr<HostCopies> copies_;
  std::optional<Writing> writing_;
  std::exception_ptr error_;  // of the last file, on the main rank
};

}  // namespace aifs::train
