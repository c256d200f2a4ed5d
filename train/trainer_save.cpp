// SPDX-License-Identifier: Apache-2.0
// Validation and checkpoints of the trainer, and how it leaves after an error.
#include <ATen/ATen.h>

#include <cmath>
#include <ctime>

#include "core/check.h"
#include "core/log.h"
#include "core/time.h"
#include "train/error_text.h"
#include "train/trainer.h"

namespace aifs::train {

namespace {

fs::path checkpoint_folder(const fs::path& run_dir) {
  return run_dir / "checkpoints";
}

// Averaged weights in place of the live ones, and all values there, until restore() or the end of
// the scope, whatever ends it.
class AveragedWeights {
 public:
  // `average` null: the live weights remain. `lost` is set if they could not be put back.
  AveragedWeights(ParameterShards& shards, const WeightAverage* average, bool& lost)
      : shards_(shards), lost_(lost) {
    if (average) {
      live_ = shards_.local_values().detach().clone();
      lost_ = true;  // until they are back
      shards_.set_local_values(average->values());
    }
    // Replicas may have different numbers of dates: nothing is fetched between them.
    shards_.fetch_all();
  }
  ~AveragedWeights() {
    if (is_restored_ || shards_.shard_group().size() > 1) return;  // the others do not take part
    try {
      restore();
    } catch (const std::exception&) {  // `lost` says so
    }
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

  // Collective.
  void restore() {
    is_restored_ = true;
    shards_.release_all();
    if (live_.defined()) shards_.set_local_values(live_);
    lost_ = false;
  }

 private:
  ParameterShards& shards_;
  bool& lost_;
  bool is_restored_ = false;
  at::Tensor live_;
};

}  // namespace

void Trainer::save_before_error() {
  if (state_.step == first_step_ || weights_lost_) return;
  try {
    checkpoint(/*required=*/false, /*keep=*/0);
  } catch (const std::exception& error) {
    log::error("no checkpoint before the run ends: ", error_text(error));
  }
}

void Trainer::fail_together(const std::exception_ptr& error) const {
  if (parts_.mesh.world().size() == 1) std::rethrow_exception(error);
  const auto fail = [&] {
    if (error) std::rethrow_exception(error);
  };
  parallel::together(parts_.mesh.world(), fail, options_.failure);
}

ValidationResult Trainer::validation_result() {
  const bool averaged = average_ && average_->num_updates() > 0;
  AveragedWeights weights(*shards_, averaged ? &*average_ : nullptr, weights_lost_);
  const int64_t chosen = options_.train.validation.rollout;
  const ValidationCall call{
      .rollout = chosen > 0 ? chosen : rollout_of_last_step(options_.train.rollout, state_),
      .should_stop = [this] { return wants_to_stop(); }};
  ValidationResult result = parts_.validation->run(forecaster_, *parts_.loss, call);
  weights.restore();
  return result;
}

bool Trainer::owes_validation() const {
  if (!log_ || !parts_.validation) return false;
  const ValidationOptions& o = options_.train.validation;
  const bool due = is_due(state_, o.every_steps, o.every_epochs) ||
                   (o.at_end && (at_step_limit() || at_epoch_limit()));
  // Without a file to go on with this is a branch of another run, which has the scores.
  const std::optional<int64_t> last = log_->last_validation_step();
  return due && state_.step > 0 && last && *last < state_.step;
}

bool Trainer::validate() {
  if (!parts_.validation || last_validation_step_ == state_.step) return false;
  if (log_) log_->clear_progress();
  const PartTimer::Scope scope(timer_, Part::kValidation);
  const ValidationResult result = validation_result();
  if (result.stopped) return true;
  last_validation_step_ = state_.step;
  if (log_) log_->write_validation({state_.step, state_.epoch}, result, parts_.variables);
  if (!result.failure.empty() &&
      options_.train.validation.on_failure == OnFailedValidation::kStop) {
    save_before_error();
    const DataError error(concat("the validation at step ", state_.step,
                                 " failed, and train.validation.on_failure ", "is \"stop\""));
    fail_together(parts_.mesh.is_main() ? std::make_exception_ptr(error) : nullptr);
  }
  return false;
}

void Trainer::checkpoint(bool required, int64_t keep) {
  if (last_checkpoint_step_ == state_.step) return;
  const PartTimer::Scope scope(timer_, Part::kCheckpoint);
  const bool bad = !are_finite({shards_->local_values()});
  if (parallel::on_any_rank(parts_.mesh.world(), bad)) {
    throw NumericalError(
        concat("the weights are not finite after step ", state_.step, ": no checkpoint is written"),
        last_checkpoint_step_ >= 0
            ? concat("resume from the one of step ", last_checkpoint_step_,
                     " with a smaller learning rate")
            : std::string("try a smaller learning rate, or a longer warm-up"));
  }
  shards_->fetch_all();
  const CheckpointTensors tensors =
      gather_tensors(parts_.parameters, *optimizer_, /*keep=*/parts_.mesh.is_main(),
                     [&](const at::Tensor& own) { return shards_->whole(own); });
  bool written = false;
  if (parts_.mesh.is_main()) {
    const std::shared_ptr<void> work = parts_.mesh.world().at_work("writing a checkpoint");
    written = write(tensors, required, keep);
  }
  shards_->release_all();
  // All ranks know it: whether there is another try at this step is for all to decide alike.
  if (parallel::on_any_rank(parts_.mesh.world(), written)) last_checkpoint_step_ = state_.step;
}

bool Trainer::write(const CheckpointTensors& tensors, bool required, int64_t keep) {
  log_->clear_progress();
  CheckpointMeta meta = options_.checkpoint_meta;
  meta.time_utc = format_date(static_cast<int64_t>(std::time(nullptr)));
  try {
    const fs::path path =
        write_checkpoint(checkpoint_folder(options_.run_dir), state_, tensors, meta, keep);
    log::info("checkpoint '", path.string(), "'");
    return true;
  } catch (const std::exception& error) {
    if (required) throw;
    log::error("no checkpoint at step ", state_.step, ": ", error.what(),
               "; training goes on, the next one will be tried");
    return false;
  }
}

}  // namespace aifs::train
