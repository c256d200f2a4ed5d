// SPDX-License-Identifier: Apache-2.0
#include "train/run_checkpoints.h"

#include <ctime>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"

namespace aifs::train {

void RunCheckpoints::begin(int64_t resume_step) {
  if (setup_.keep_best.is_on() && setup_.mesh.is_main())
    best_.emplace(setup_.run_dir / "checkpoints", setup_.keep_best, resume_step);
}

void RunCheckpoints::keep_if_best(const LoopState& state, double score, int64_t keep, RunLog* log) {
  if (!parallel::on_any_rank(setup_.mesh.world(), best_ && best_->would_keep(score))) return;
  write(state, /*required=*/false, keep, log);
  if (!best_ || last_step_ != state.step) return;
  // A run that goes on from a checkpoint of another has none of its own yet.
  if (!folder_exists(checkpoint_path(setup_.run_dir / "checkpoints", state.step))) return;
  best_->add(state.step, score);
  log::info("checkpoint of step ", state.step, " is kept: ", setup_.keep_best.by.score, " ", score,
            best_->steps().front() == state.step ? ", the best so far" : ", among the best");
}

void RunCheckpoints::write(const LoopState& state, bool required, int64_t keep, RunLog* log) {
  if (last_step_ == state.step) return;
  const PartTimer::Scope scope(setup_.step.timer(), Part::kCheckpoint);
  ParameterShards& shards = setup_.step.shards();
  const bool bad = !are_finite({shards.local_values()});
  if (parallel::on_any_rank(setup_.mesh.world(), bad)) {
    throw NumericalError(
        concat("the weights are not finite after step ", state.step, ": no checkpoint is written"),
        last_step_ >= 0
            ? concat("resume from the one of step ", last_step_, " with a smaller learning rate")
            : std::string("try a smaller learning rate, or a longer warm-up"));
  }
  shards.fetch_all();
  const CheckpointTensors tensors =
      gather_tensors(setup_.parameters, setup_.step.optimizer(), /*keep=*/setup_.mesh.is_main(),
                     [&](const at::Tensor& own) { return shards.whole(own); });
  bool written = false;
  if (setup_.mesh.is_main()) {
    const std::shared_ptr<void> work = setup_.mesh.world().at_work("writing a checkpoint");
    if (log) log->clear_progress();
    written = write_file(tensors, state, required, keep);
  }
  shards.release_all();
  // All ranks know it: whether there is another try at this step is for all to decide alike.
  if (parallel::on_any_rank(setup_.mesh.world(), written)) last_step_ = state.step;
}

bool RunCheckpoints::write_file(const CheckpointTensors& tensors, const LoopState& state,
                                bool required, int64_t keep) {
  CheckpointMeta meta = setup_.meta;
  meta.time_utc = format_date(static_cast<int64_t>(std::time(nullptr)));
  try {
    const fs::path path = write_checkpoint(setup_.run_dir / "checkpoints", state, tensors, meta,
                                           keep, best_ ? best_->steps() : std::vector<int64_t>());
    log::info("checkpoint '", path.string(), "'");
    return true;
  } catch (const std::exception& error) {
    if (required) throw;
    log::error("no checkpoint at step ", state.step, ": ", error.what(),
               "; training goes on, the next one will be tried");
    return false;
  }
}

}  // namespace aifs::train
