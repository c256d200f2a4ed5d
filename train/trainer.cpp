// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "core/seconds_since.h"
#include "train/averaged_weights.h"
#include "train/error_text.h"
#include "train/scores/early_stop.h"
#include "train/scores/named_scores.h"

namespace aifs::train {

namespace {

using Clock = std::chrono::steady_clock;

ScheduleOptions complete(ScheduleOptions schedule, const TrainOptions& train) {
  if (schedule.total_steps == 0) schedule.total_steps = train.max_steps;
  check_end(schedule, "optimizer.schedule");
  return schedule;
}

// With the learning rate of a whole step and the end of its schedule.
TrainerOptions completed(TrainerOptions options, const data::SamplerOptions& sampling) {
  OptimizerOptions& o = options.optimizer;
  o.schedule = complete(o.schedule, options.train);
  o.schedule.lr =
      scaled_lr(o.schedule.lr, o.lr_scaling,
                sampling.batch_size * sampling.num_groups * options.train.accumulate_batches,
                o.reference_samples);
  return options;
}

std::vector<TrainingDataset> all_datasets(const TrainerParts& parts) {
  std::vector<TrainingDataset> all{{parts.name, parts.source, parts.variables, parts.loading,
                                    parts.loss, parts.loss_nodes, parts.output_mask}};
  for (const TrainingDataset& further : parts.further)
    all.push_back(further);
  return all;
}

StepParts step_parts(const TrainerParts& parts, const std::vector<TrainingDataset>& datasets) {
  StepParts step{.parameters = parts.parameters,
                 .network = parts.network,
                 .datasets = {},
                 .window = parts.window,
                 .mesh = parts.mesh,
                 .device = parts.device};
  for (const TrainingDataset& d : datasets)
    step.datasets.push_back({d.variables, d.loss, d.loss_nodes, d.output_mask});
  return step;
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts)
    : options_(completed(options, parts.sampling)),
      parts_(parts),
      datasets_(all_datasets(parts)),
      cadence_(options.train, options.checkpoint, options.should_stop),
      step_({.train = options.train,
             .optimizer = options.optimizer,
             .sharding = options.sharding,
             .reduction = options.reduction,
             .one_host = options.one_host,
             .seed = parts.sampling.seed},
            step_parts(parts, datasets_)),
      feed_({.datasets = datasets_,
             .window = parts.window,
             .sampling = parts.sampling,
             .train = options.train,
             .mesh = parts.mesh,
             .device = parts.device,
             .resident_data = options.resident_data}),
      nonfinite_({.step = step_,
                  .parameters = parts.parameters,
                  .datasets = datasets_,
                  .window = parts.window,
                  .mesh = parts.mesh,
                  .run_dir = options.run_dir,
                  .choice = options.train.on_nonfinite,
                  .max_skipped_steps = options.train.max_skipped_steps}),
      passes_(step_, feed_, nonfinite_, parts.mesh, [this] { return cadence_.wants_to_stop(); }),
      checkpoints_({.step = step_,
                    .parameters = parts.parameters,
                    .mesh = parts.mesh,
                    .run_dir = options.run_dir,
                    .meta = options.checkpoint_meta,
                    .options = options.checkpoint}) {}

Trainer::~Trainer() = default;

void Trainer::load(const CheckpointInfo& checkpoint) {
  step_.load(checkpoint);
  state_ = checkpoint.state;
  if (parts_.mesh.is_main()) checkpoints_.take_up(checkpoint);
  if (!counts_alike(options_.train.early_stop, checkpoint.meta.config_json)) state_.stop_count = {};
}

void Trainer::share_state(bool resumed) {
  const at::Tensor position = to_tensor(state_);
  const at::Tensor flag = at::full({1}, resumed ? 1.0 : 0.0, at::kDouble);
  parallel::Communicator& world = parts_.mesh.world();
  world.broadcast(position, 0);
  world.broadcast(flag, 0);
  state_ = loop_state_of(position);
  resumed = flag.item<double>() != 0.0;
  step_.share(resumed);
  LossScale& loss_scale = step_.loss_scale();
  if (loss_scale.active() && state_.loss_scale > 0.0)
    loss_scale.restore(state_.loss_scale, state_.loss_scale_steps);
  if (!resumed) return;
  checkpoints_.resumed_at(state_.step);
  last_validation_step_ = state_.step;  // it was done before the checkpoint was written
}

Outcome Trainer::run() {
  cadence_.start();
  feed_.check_samples();
  step_.begin();
  const bool resumed = checkpoints_.last_step() >= 0;
  if (cadence_.saves_meanwhile()) checkpoints_.prepare();
  start_logs(resumed);
  first_step_ = state_.step;
  checkpoints_.begin(resumed ? state_.step : -1);
  take_up_count();
  if (log_) log_->goodput().begin(state_.step);
  bool stopped = false;
  if (resumed && parallel::on_any_rank(parts_.mesh.world(), owes_validation())) {
    last_validation_step_ = -1;
    stopped = validate();
  }
  stopped = stopped || run_epochs() == EpochEnd::kStop;
  // A checkpoint first: whatever happens to a validation, the steps are not lost.
  const bool early = stops_early();
  if (stopped || early || options_.checkpoint.at_end) save(/*required=*/true);
  if (!stopped && options_.train.validation.at_end && validate()) {
    stopped = true;
    save(/*required=*/true);
  }
  const Outcome outcome = stopped ? Outcome::kInterrupted
                          : early ? Outcome::kStoppedEarly
                                  : Outcome::kFinished;
  {
    const PartTimer::Scope scope(step_.timer(), Part::kCheckpoint);
    checkpoints_.finish(log_.get());
  }
  end_logs(outcome);
  return outcome;
}

void Trainer::take_up_count() {
  if (!options_.train.early_stop.is_on()) return;
  const auto read = [&] {
    if (log_)
      count_lines(options_.train.early_stop, options_.run_dir / "validation.jsonl",
                  state_.stop_count);
  };
  parallel::together(parts_.mesh.world(), read, options_.failure);
  const at::Tensor position = to_tensor(state_);
  parts_.mesh.world().broadcast(position, 0);
  state_ = loop_state_of(position);
}

Trainer::EpochEnd Trainer::run_epochs() {
  step_first_batch_ = state_.batch_in_epoch;
  EpochEnd end = EpochEnd::kDone;
  try {
    while (end == EpochEnd::kDone && !cadence_.at_limit(state_) && !stops_early())
      end = run_epoch();
  } catch (const NumericalError&) {
    throw;
  } catch (const parallel::FailedTogether&) {
    throw;
  } catch (const std::exception&) {
    // Other ranks do not know of it, so only a single one can still gather a checkpoint.
    if (parts_.mesh.world().size() == 1 && !step_.is_updating()) {
      state_.batch_in_epoch = step_first_batch_;
      save_before_error();
    }
    throw;
  }
  feed_.end();  // what is validated and written at the end has the host to itself
  return end;
}

Trainer::EpochEnd Trainer::run_epoch() {
  int64_t left = feed_.begin_epoch(state_);
  if (left == 0) go_to_next_epoch();  // resumed where epochs had more batches: this one is over
  while (left > 0) {
    const Clock::time_point start = Clock::now();
    StepFigures figures;
    figures.rollout = rollout_at(options_.train.rollout, state_.epoch, state_.step);
    figures.batches = std::min(options_.train.accumulate_batches, left);
    left -= figures.batches;
    step_first_batch_ = state_.batch_in_epoch;
    if (options_.at_step) options_.at_step(state_.step + 1);
    step_.start(state_.step);
    passes_.run(figures, state_);
    if (!figures.dropped) update_weights(figures);
    if (figures.dropped) return give_step_up(figures);
    figures.data_s = feed_.take_wait_s();
    figures.step_s = seconds_since(start);
    record(figures);
    if (left == 0) go_to_next_epoch();
    step_first_batch_ = state_.batch_in_epoch;
    save_and_validate(figures);
    if (cadence_.at_step_limit(state_) || stops_early()) return EpochEnd::kLimit;
    if (figures.stop) return EpochEnd::kStop;
  }
  return EpochEnd::kDone;
}

void Trainer::update_weights(StepFigures& figures) {
  bool finite = figures.finite;
  const PartTimer::Scope scope(step_.timer(), Part::kOptimizer);
  figures.lr = next_rate();
  // Ranks with the same gradients also draw the same conclusion from a sum of them that is at the
  // edge of what is finite.
  const bool bad = finite && !figures.failure && !step_.finish_gradients();
  const std::vector<double> counts =
      parallel::sum_over(parts_.mesh.world(),
                         {static_cast<double>(bad), static_cast<double>(figures.failure != nullptr),
                          static_cast<double>(parts_.mesh.is_main() && cadence_.saves_by_time())});
  figures.dropped = counts[1] > 0;
  figures.saves = counts[2] > 0;
  if (figures.dropped) return;
  LossScale& loss_scale = step_.loss_scale();
  if (!finite) {
    skip_or_fail(figures.bad, figures);
  } else {
    finite = counts[0] == 0.0;
    // In fp16 gradients that overflow are how the loss scale finds its size.
    if (!finite && !loss_scale.active()) {
      step_.shards().fetch_all();
      const NonfiniteReport report =
          nonfinite_.describe("a gradient is not finite", feed_.batch(), figures, state_);
      step_.shards().release_all();
      skip_or_fail(report, figures);
    }
  }
  const double norm = finite ? step_.update(figures.lr) : 0.0;
  step_.finish(/*updated=*/finite);
  nonfinite_.note(/*updated=*/finite);
  if (options_.optimizer.clip == ClipKind::kNorm) figures.gradient_norm = norm;
  if (loss_scale.active()) figures.loss_scale = loss_scale.value();
  state_.loss_scale = figures.loss_scale.value_or(0.0);
  state_.loss_scale_steps = loss_scale.good_steps();
  figures.skipped = !finite;
  ++state_.step;
}

void Trainer::record(const StepFigures& figures) {
  note_pauses();
  if (log_) log_->write_step(to_json(figures, state_));
  checkpoints_.report(log_.get());
  const std::string slow_reading = feed_.watch(figures);
  if (slow_reading.empty()) return;
  log_->clear_progress();
  log::warning(slow_reading);
}

void Trainer::save_and_validate(StepFigures& figures) {
  const bool saves = figures.saves || cadence_.saves(state_),
             validates = cadence_.validates(state_);
  if (saves) save(/*required=*/false);
  if (validates) figures.stop = validate() || figures.stop;
  if (!saves && !validates) return;
  // They may have taken long.
  figures.stop =
      parallel::on_any_rank(parts_.mesh.world(), figures.stop || cadence_.wants_to_stop());
}

void Trainer::go_to_next_epoch() {
  ++state_.epoch;
  state_.batch_in_epoch = 0;
}

Trainer::EpochEnd Trainer::give_step_up(const StepFigures& figures) {
  state_.batch_in_epoch = step_first_batch_;
  if (!parallel::on_any_rank(parts_.mesh.world(), figures.failure != nullptr))
    return EpochEnd::kStop;
  save_before_error();
  fail_together(figures.failure);
  return EpochEnd::kStop;  // not reached: it has thrown
}

void Trainer::skip_or_fail(const NonfiniteReport& report, const StepFigures& figures) {
  if (nonfinite_.skips(report)) return;
  const bool bad_input = parallel::on_any_rank(parts_.mesh.world(), report.input_is_bad);
  const int64_t before = checkpoints_.last_step();
  state_.batch_in_epoch = step_first_batch_;
  save_before_error();
  const std::string found = report.text.empty()
                                ? concat("step ", state_.step + 1, " (epoch ", figures.place[0],
                                         "): a loss of another rank is not finite")
                                : report.text;
  throw NumericalError(
      found, bad_input ? report.hint : way_out({before, checkpoints_.last_step()}, state_.step));
}

void Trainer::fail_together(const std::exception_ptr& error) const {
  if (parts_.mesh.world().size() == 1) std::rethrow_exception(error);
  const auto fail = [&] {
    if (error) std::rethrow_exception(error);
  };
  parallel::together(parts_.mesh.world(), fail, options_.failure);
}

void Trainer::save_before_error() {
  if (state_.step == first_step_ || weights_lost_) return;
  try {
    checkpoints_.write(state_, {.waits = true}, log_.get());
  } catch (const std::exception& error) {
    log::error("no checkpoint before the run ends: ", error_text(error));
  }
}

void Trainer::save(bool required) {
  cadence_.note_save();
  checkpoints_.write(state_, {.required = required, .removes_old = true}, log_.get());
}

bool Trainer::validate() {
  if (!parts_.validation || last_validation_step_ == state_.step) return false;
  if (log_) log_->clear_progress();
  const ValidationResult result = validation_result();
  if (result.stopped) return true;
  last_validation_step_ = state_.step;
  judge(result);  // before the line that says that it was done
  if (log_) log_->write_validation({state_.step, state_.epoch}, result, parts_.variables);
  if (!result.failure.empty() &&
      options_.train.validation.on_failure == OnFailedValidation::kStop) {
    save_before_error();
    const DataError error(concat("the validation at step ", state_.step,
                                 " failed, and train.validation.on_failure is \"stop\""));
    fail_together(parts_.mesh.is_main() ? std::make_exception_ptr(error) : nullptr);
  }
  return false;
}

void Trainer::judge(const ValidationResult& result) {
  const KeepBestOptions& best = options_.checkpoint.keep_best;
  const EarlyStopOptions& early = options_.train.early_stop;
  if (!result.has_scores() || (!best.is_on() && !early.is_on())) return;
  const nlohmann::ordered_json scores = to_json(result, parts_.variables);
  // What the main rank says: a difference in the last bit must not part the ranks.
  const at::Tensor values = at::tensor(
      {score_called(best.by.score, scores), score_called(early.by.score, scores)}, at::kDouble);
  parts_.mesh.world().broadcast(values, 0);
  StopCount& count = state_.stop_count;
  count_score(early, values[1].item<double>(), state_.step, count);
  if (log_ && early.is_on() && count.without_gain > 0)
    log::info("train.early_stop: ", count.without_gain, " of ", early.patience,
              " validations without a gain; the best ", early.by.score, " is ", count.best);
  if (best.is_on()) checkpoints_.keep_if_best(state_, values[0].item<double>(), log_.get());
}

ValidationResult Trainer::validation_result() {
  const PartTimer::Scope scope(step_.timer(), Part::kValidation);
  AveragedWeights weights(step_, weights_lost_);
  const int64_t chosen = options_.train.validation.rollout;
  const ValidationCall call{
      .rollout = chosen > 0 ? chosen : rollout_of_last_step(options_.train.rollout, state_),
      .should_stop = [this] { return cadence_.wants_to_stop(); }};
  ValidationResult result = parts_.validation->run(step_.forecaster(), *parts_.loss, call);
  weights.restore();
  return result;
}

bool Trainer::owes_validation() const {
  if (!log_ || !parts_.validation) return false;
  const bool due = cadence_.validates(state_) || cadence_.validates_at_end(state_);
  // Without a file to go on with this is a branch of another run, which has the scores.
  const std::optional<int64_t> last = log_->last_validation_step();
  return due && state_.step > 0 && last && *last < state_.step;
}

void Trainer::start_logs(bool resumed) {
  if (!parts_.mesh.is_main()) return;
  log_ = std::make_unique<RunLog>(
      RunLogSetup{.run_dir = options_.run_dir,
                  .options = options_.log,
                  .config_json = options_.checkpoint_meta.config_json,
                  .program_version = options_.checkpoint_meta.program_version,
                  .resume_step = resumed ? state_.step : -1,
                  .first_step = state_.step,
                  .last_step = options_.train.max_steps,
                  .program_start = options_.program_start,
                  .operations = options_.operations,
                  .gpus = options_.gpus});
  if (parts_.mesh.alike().size() > 1) log::info("gradients: ", step_.reducer().describe());
}

void Trainer::note_pauses() {
  if (!log_) return;
  log_->goodput().set_pauses(step_.timer().seconds(Part::kValidation),
                             step_.timer().seconds(Part::kCheckpoint));
}

void Trainer::end_logs(Outcome outcome) {
  if (!log_) return;
  note_pauses();
  log_->clear_progress();
  log_->goodput().write();
  log::info(log_->goodput().text());
  log_->end(outcome == Outcome::kInterrupted ? MlflowWriter::Status::kKilled
                                             : MlflowWriter::Status::kFinished);
  if (const StopCount& count = state_.stop_count; outcome == Outcome::kStoppedEarly)
    log::info("stopped early at step ", state_.step, ": ", options_.train.early_stop.by.score,
              " has not been better than ", count.best, " for ", count.without_gain,
              " validations; a larger train.early_stop.patience and --resume go on");
  if (const int64_t failed = log_->num_failed_validations(); failed > 0)
    log::warning(failed, " validations of this run failed; validation.jsonl says why");
  if (options_.profile.parts)
    log::info("time per part\n", step_.timer().table(state_.step - first_step_));
}

}  // namespace aifs::train
