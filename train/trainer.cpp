// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/cores.h"
#include "core/file_io.h"
#include "core/log.h"
#include "core/rng.h"
#include "core/seconds_since.h"
#include "core/time.h"
#include "parallel/gather_text.h"
#include "train/epoch_requests.h"
#include "train/step_figures.h"

namespace aifs::train {

namespace {

using Clock = std::chrono::steady_clock;

ScheduleOptions complete(ScheduleOptions schedule, const TrainOptions& train) {
  if (schedule.total_steps == 0) schedule.total_steps = train.max_steps;
  if (schedule.total_steps == 0 && schedule.kind == ScheduleKind::kCosine) {
    throw ConfigError("optimizer.schedule.total_steps",
                      "a cosine needs an end, and train.max_steps gives none",
                      "set it, or use \"kind\": \"constant\"");
  }
  return schedule;
}

std::vector<FurtherDataset> all_datasets(const TrainerParts& parts) {
  std::vector<FurtherDataset> all{
      {parts.name, parts.source, parts.variables, parts.loading, parts.loss, parts.loss_nodes}};
  for (const FurtherDataset& further : parts.further)
    all.push_back(further);
  return all;
}

std::vector<const data::VariableTable*> tables_of(const std::vector<FurtherDataset>& datasets) {
  std::vector<const data::VariableTable*> tables;
  for (const FurtherDataset& d : datasets)
    tables.push_back(&d.variables);
  return tables;
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts)
    : options_(options),
      parts_(parts),
      datasets_(all_datasets(parts)),
      forecaster_(parts.network, tables_of(datasets_), parts.window, parts.device,
                  {.recompute_steps = options.train.rollout.recompute}),
      loss_scale_(options.train.precision) {
  const OptimizerOptions& o = options_.optimizer;
  ScheduleOptions schedule = complete(o.schedule, options.train);
  schedule.lr = scaled_lr(
      schedule.lr, o.lr_scaling,
      parts.sampling.batch_size * parts.sampling.num_groups * options.train.accumulate_batches,
      o.reference_samples);
  options_.optimizer.schedule = schedule;
  freeze(parts.parameters, o.freeze);
  check_reduction(options.sharding, options.reduction);
  shards_ = std::make_unique<ParameterShards>(
      parts.parameters, options.sharding,
      bucket_mb(options.sharding, options.reduction, options.one_host,
                1e-6 * static_cast<double>(parts.parameters.flat_gradients().nbytes())),
      parts.mesh);
  reducer_ = std::make_unique<GradientReducer>(parts.parameters, *shards_, options.reduction,
                                               parts.mesh, parts.sampling.seed);
  optimizer_ = std::make_unique<AdamW>(parts.parameters, o.adamw, own_parts(),
                                       shards_->layout().local_size(), shards_->on_host());
  optimizer_->set_ranges(
      parameter_ranges(parts.parameters, o.groups, o.freeze, o.adamw.weight_decay));
  if (o.average.kind != AverageKind::kNone) {
    average_.emplace(o.average.kind, o.average.decay);
    const at::Tensor values = shards_->local_values();
    average_->prepare(shards_->on_host() ? values.cpu() : values);
    optimizer_->attach(kAverageState, average_->values());
  }
}

// Where nothing is shared out, one part is everything.
std::vector<OwnPart> Trainer::own_parts() const {
  if (shards_->states() == Sharding::kNone) {
    return {{.values = parts_.parameters.flat_values(),
             .gradients = parts_.parameters.flat_gradients()}};
  }
  std::vector<OwnPart> parts;
  for (const ShardBucket& bucket : shards_->layout().buckets()) {
    parts.push_back({.begin = bucket.own_begin,
                     .local_begin = bucket.local_begin,
                     .values = shards_->own_values(bucket),
                     .gradients = reducer_->own_gradients(bucket)});
  }
  return parts;
}

Trainer::~Trainer() = default;

std::string Trainer::of_dataset(size_t dataset) const {
  return datasets_.size() == 1 ? "" : concat(" of '", datasets_[dataset].name, "'");
}

std::vector<data::FeedSource> Trainer::feed_sources() const {
  std::vector<data::FeedSource> sources;
  for (const FurtherDataset& d : datasets_)
    sources.push_back({d.source, d.loading});
  return sources;
}

std::vector<const data::DatasetInfo*> Trainer::infos() const {
  std::vector<const data::DatasetInfo*> all;
  for (size_t d = 0; d < datasets_.size(); ++d)
    all.push_back(&info(d));
  return all;
}

void Trainer::load(const CheckpointInfo& checkpoint) {
  load_parameters(checkpoint, parts_.parameters);
  for (const auto& [name, local] : optimizer_->states()) {
    loaded_.flats.emplace_back(
        name, at::zeros({parts_.parameters.flat_size()}, local.options().device(at::kCPU)));
  }
  load_optimizer(checkpoint, parts_.parameters, loaded_);
  state_ = checkpoint.state;
}

void Trainer::share_state(bool resumed) {
  parallel::Communicator& world = parts_.mesh.world();
  const std::array<double, 7> own{static_cast<double>(resumed),
                                  static_cast<double>(state_.step),
                                  static_cast<double>(state_.epoch),
                                  static_cast<double>(state_.batch_in_epoch),
                                  state_.loss_scale,
                                  static_cast<double>(state_.loss_scale_steps),
                                  static_cast<double>(loaded_.num_steps)};
  const at::Tensor numbers = at::tensor(at::ArrayRef<double>(own), at::kDouble);
  world.broadcast(numbers, 0);
  const double* shared = numbers.const_data_ptr<double>();
  state_ = {.step = static_cast<int64_t>(shared[1]),
            .epoch = static_cast<int64_t>(shared[2]),
            .batch_in_epoch = static_cast<int64_t>(shared[3]),
            .loss_scale = shared[4],
            .loss_scale_steps = static_cast<int64_t>(shared[5])};
  optimizer_->set_num_steps(static_cast<int64_t>(shared[6]));
  parallel::Communicator& alike = parts_.mesh.alike();
  const at::Tensor& values = parts_.parameters.flat_values();
  alike.broadcast(values, 0);
  const auto& states = optimizer_->states();
  for (size_t i = 0; i < states.size() && shared[0] != 0.0; ++i) {
    const at::Tensor whole = loaded_.flats.empty() ? at::empty_like(values)
                                                   : loaded_.flats[i].second.to(values.device());
    alike.broadcast(whole, 0);
    states[i].second.copy_(shards_->own(whole));
  }
  loaded_ = {};
  if (average_) average_->set_num_updates(optimizer_->num_steps());
  if (loss_scale_.active() && state_.loss_scale > 0.0) {
    loss_scale_.restore(state_.loss_scale, state_.loss_scale_steps);
  }
  if (shared[0] == 0.0) return;
  last_checkpoint_step_ = state_.step;
  last_validation_step_ = state_.step;  // it was done before the checkpoint was written
}

void Trainer::start_logs(bool resumed) {
  if (!parts_.mesh.is_main()) return;
  log_ = std::make_unique<RunLog>(options_.run_dir, options_.log, resumed ? state_.step : -1,
                                  state_.step, options_.train.max_steps);
  if (parts_.mesh.alike().size() > 1) log::info("gradients: ", reducer_->describe());
}

Outcome Trainer::run() {
  start_ = Clock::now();
  check_training_samples(infos(), parts_.window, options_.train.longest_rollout());
  shards_->take_values();
  optimizer_->set_parts(own_parts());
  const bool resumed = last_checkpoint_step_ >= 0;
  start_logs(resumed);
  if (parts_.device.is_cuda()) {
    recorder_.start(options_.train.cuda_graph,
                    datasets_.size() > 1
                        ? "several datasets"
                        : why_not_recorded(options_.train.precision, options_.sharding,
                                           options_.reduction, parts_.network, parts_.mesh),
                    parts_.mesh.world());
  }
  first_step_ = state_.step;
  bool stopped = false;
  if (resumed && parallel::on_any_rank(parts_.mesh.world(), owes_validation())) {
    last_validation_step_ = -1;
    stopped = validate();
  }
  stopped = stopped || run_epochs() == EpochEnd::kStop;
  // A checkpoint first: whatever happens to a validation, the steps are not lost.
  if (stopped || options_.checkpoint.at_end) checkpoint(/*required=*/true);
  if (!stopped && options_.train.validation.at_end && validate()) {
    stopped = true;
    checkpoint(/*required=*/true);
  }
  if (log_) {
    log_->clear_progress();
    if (const int64_t failed = log_->num_failed_validations(); failed > 0)
      log::warning(failed, " validations of this run failed; validation.jsonl says why");
    if (options_.profile.parts)
      log::info("time per part\n", timer_.table(state_.step - first_step_));
  }
  return stopped ? Outcome::kInterrupted : Outcome::kFinished;
}

Trainer::EpochEnd Trainer::run_epochs() {
  step_first_batch_ = state_.batch_in_epoch;
  EpochEnd end = EpochEnd::kDone;
  try {
    while (end == EpochEnd::kDone && !at_step_limit() && !at_epoch_limit())
      end = run_epoch();
  } catch (const NumericalError&) {
    throw;
  } catch (const parallel::FailedTogether&) {
    throw;
  } catch (const std::exception&) {
    // Other ranks do not know of it, so only a single one can still gather a checkpoint.
    if (parts_.mesh.world().size() == 1 && !updating_) {
      state_.batch_in_epoch = step_first_batch_;
      save_before_error();
    }
    throw;
  }
  end_feed();  // what is validated and written at the end has the host to itself
  return end;
}

bool Trainer::wants_to_stop() const {
  return out_of_time() || (options_.should_stop && options_.should_stop());
}

bool Trainer::at_step_limit() const {
  return options_.train.max_steps > 0 && state_.step >= options_.train.max_steps;
}

bool Trainer::at_epoch_limit() const {
  return options_.train.max_epochs > 0 && state_.epoch >= options_.train.max_epochs;
}

bool Trainer::out_of_time() const {
  return options_.train.max_minutes > 0 &&
         seconds_since(start_) > 60.0 * options_.train.max_minutes;
}

Trainer::EpochEnd Trainer::run_epoch() {
  int64_t left = begin_epoch();
  if (left == 0) {  // resumed where epochs had more batches: this one is over
    ++state_.epoch;
    state_.batch_in_epoch = 0;
    return EpochEnd::kDone;
  }
  Clock::time_point step_start = Clock::now();
  while (left > 0) {
    StepFigures figures;
    figures.rollout = rollout_at(options_.train.rollout, state_.epoch, state_.step);
    figures.batches = std::min(options_.train.accumulate_batches, left);
    left -= figures.batches;
    step_first_batch_ = state_.batch_in_epoch;
    if (options_.at_step) options_.at_step(state_.step + 1);
    reducer_->start_step(state_.step);
    accumulate_gradients(figures);
    figures.loss /= static_cast<double>(figures.batches);
    shards_->release_all();
    if (figures.dropped) return give_step_up(figures);
    update_weights(figures);
    if (figures.dropped) return give_step_up(figures);
    const double waited_s = feed_ ? feed_->wait_s() : 0.0;
    figures.data_s = waited_s - std::exchange(waited_before_s_, waited_s);
    figures.step_s = seconds_since(step_start);
    record(figures);
    watch_feed(figures);
    if (left == 0) {
      ++state_.epoch;
      state_.batch_in_epoch = 0;
    }
    step_first_batch_ = state_.batch_in_epoch;
    const ValidationOptions& validation = options_.train.validation;
    const CheckpointOptions& saving = options_.checkpoint;
    const bool saves = is_due(state_, saving.every_steps, saving.every_epochs);
    const bool validates = is_due(state_, validation.every_steps, validation.every_epochs);
    if (saves) checkpoint(/*required=*/false);
    if (validates) figures.stop = validate() || figures.stop;
    if (saves || validates)  // they may have taken long
      figures.stop = parallel::on_any_rank(parts_.mesh.world(), figures.stop || wants_to_stop());
    if (at_step_limit()) return EpochEnd::kLimit;
    if (figures.stop) return EpochEnd::kStop;
    step_start = Clock::now();
  }
  return EpochEnd::kDone;
}

Trainer::EpochEnd Trainer::give_step_up(const StepFigures& figures) {
  state_.batch_in_epoch = step_first_batch_;
  if (!parallel::on_any_rank(parts_.mesh.world(), figures.failure != nullptr))
    return EpochEnd::kStop;
  save_before_error();
  fail_together(figures.failure);
  return EpochEnd::kStop;  // not reached: it has thrown
}

void Trainer::update_weights(StepFigures& figures) {
  bool finite = figures.finite;
  const PartTimer::Scope scope(timer_, Part::kOptimizer);
  figures.lr = learning_rate(options_.optimizer.schedule, state_.step);
  const OwnGradients gradients = reducer_->own_gradients();
  bool bad = false;
  if (finite && !figures.failure) {
    if (loss_scale_.active()) {
      for (const at::Tensor& part : gradients.all())
        part.div_(loss_scale_.value());
    }
    // Ranks with the same gradients also draw the same conclusion from a sum of them that is at the
    // edge of what is finite.
    bad = !are_finite(gradients.all());
  }
  const std::vector<double> counts = parallel::sum_over(
      parts_.mesh.world(),
      {static_cast<double>(bad), static_cast<double>(figures.failure != nullptr)});
  figures.dropped = counts[1] > 0;
  if (figures.dropped) return;
  if (!finite) {
    skip_or_fail(figures.bad);
  } else {
    finite = counts[0] == 0.0;
    // In fp16 gradients that overflow are how the loss scale finds its size.
    if (!finite && !loss_scale_.active()) {
      shards_->fetch_all();
      const NonfiniteReport report =
          describe_nonfinite("a gradient is not finite", figures.rollout);
      shards_->release_all();
      skip_or_fail(report);
    }
  }
  if (finite) {
    updating_ = true;
    figures.gradient_norm = clipped_step(*optimizer_, figures.lr, gradients,
                                         options_.optimizer.clip, options_.optimizer.clip_limit);
    if (average_) average_->update(shards_->local_values());
    shards_->publish();
    updating_ = false;
  }
  const double scale = loss_scale_.value();
  loss_scale_.update(finite);
  if (!finite || loss_scale_.value() != scale) reducer_->forget();
  state_.loss_scale = loss_scale_.active() ? loss_scale_.value() : 0.0;
  state_.loss_scale_steps = loss_scale_.good_steps();
  figures.skipped = !finite;
  skipped_in_a_row_ = finite ? 0 : skipped_in_a_row_ + 1;
  ++state_.step;
}

void Trainer::record(const StepFigures& figures) {
  if (!log_) return;
  nlohmann::ordered_json line{{"step", state_.step},        {"epoch", state_.epoch},
                              {"loss", figures.loss},       {"lr", figures.lr},
                              {"step_s", figures.step_s},   {"data_wait_s", figures.data_s},
                              {"samples", figures.samples}, {"rollout", figures.rollout}};
  if (options_.optimizer.clip == ClipKind::kNorm) line["gradient_norm"] = figures.gradient_norm;
  if (figures.skipped) line["skipped"] = true;
  if (loss_scale_.active()) line["loss_scale"] = loss_scale_.value();
  log_->write_step(line);
}

}  // namespace aifs::train
