// SPDX-License-Identifier: Apache-2.0
#include "train/training_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/rng.h"

namespace aifs::train {

namespace {

std::vector<const data::VariableTable*> tables_of(const std::vector<StepDataset>& datasets) {
  std::vector<const data::VariableTable*> tables;
  for (const StepDataset& d : datasets)
    tables.push_back(&d.variables);
  return tables;
}

std::vector<at::Tensor> masks_of(const std::vector<StepDataset>& datasets, at::Device device) {
  std::vector<at::Tensor> masks;
  for (const StepDataset& d : datasets)
    masks.push_back(d.output_mask.defined() ? d.output_mask.to(device) : at::Tensor());
  return masks;
}

// Freezes what is not updated, but for the weights whose gradients adapters need.
void freeze_untrained(const model::ParameterSet& parameters, const OptimizerOptions& options,
                      const std::optional<Adapters>& adapters) {
  std::vector<std::string> names = untrained(parameters, options);
  if (adapters) {
    const std::vector<std::string> weights = adapters->weights();
    for (size_t i = 0; i < options.freeze.size(); ++i) {
      for (const std::string& weight : weights) {
        if (matches_pattern(weight, options.freeze[i]))
          throw ConfigError(concat("optimizer.freeze.", i),
                            concat("'", options.freeze[i], "' fits '", weight,
                                   "', which has an adapter by optimizer.lora"),
                            "adapters freeze their weights by themselves");
      }
    }
    std::erase_if(names, [&](const std::string& name) {
      return std::count(weights.begin(), weights.end(), name) > 0;
    });
  }
  freeze(parameters, names);
}

}  // namespace

std::vector<std::string> untrained(const model::ParameterSet& parameters,
                                   const OptimizerOptions& options) {
  std::vector<std::string> names = options.freeze;
  if (!options.lora.is_on()) return names;
  for (std::string& name : not_updated(parameters, options.lora))
    names.push_back(std::move(name));
  return names;
}

TrainingStep::TrainingStep(const StepOptions& options, const StepParts& parts)
    : options_(options),
      parts_(parts),
      forecaster_(parts.network, tables_of(parts.datasets), parts.window, parts.device,
                  {.output_masks = masks_of(parts.datasets, parts.device),
                   .recompute_steps = options.train.rollout.recompute}),
      loss_scale_(options.train.precision) {
  const OptimizerOptions& o = options_.optimizer;
  if (o.lora.is_on()) adapters_.emplace(parts.parameters, o.lora);
  freeze_untrained(parts.parameters, o, adapters_);
  check_reduction(options.sharding, options.reduction);
  shards_ = std::make_unique<ParameterShards>(
      parts.parameters, options.sharding,
      bucket_mb(options.sharding, options.reduction, options.one_host,
                1e-6 * static_cast<double>(parts.parameters.flat_gradients().nbytes())),
      parts.mesh);
  reducer_ = std::make_unique<GradientReducer>(parts.parameters, *shards_, options.reduction,
                                               parts.mesh, options.seed);
  optimizer_ = std::make_unique<AdamW>(parts.parameters, o.adamw, own_parts(),
                                       shards_->layout().local_size(), shards_->on_host());
  optimizer_->set_ranges(parameter_ranges(parts.parameters, o.groups,
                                          untrained(parts.parameters, o), o.adamw.weight_decay));
  if (o.average.kind != AverageKind::kNone) {
    average_.emplace(o.average.kind, o.average.decay);
    const at::Tensor values = shards_->local_values();
    average_->prepare(shards_->on_host() ? values.cpu() : values);
    optimizer_->attach(kAverageState, average_->values());
  }
}

// Returns one part with everything where nothing is sharded.
std::vector<OwnPart> TrainingStep::own_parts() const {
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

void TrainingStep::load(const CheckpointInfo& checkpoint) {
  load_parameters(checkpoint, parts_.parameters);
  for (const auto& [name, local] : optimizer_->states()) {
    loaded_.flats.emplace_back(
        name, at::zeros({parts_.parameters.flat_size()}, local.options().device(at::kCPU)));
  }
  load_optimizer(checkpoint, parts_.parameters, loaded_);
}

void TrainingStep::share(bool resumed) {
  const at::Tensor num_steps = at::full({1}, static_cast<double>(loaded_.num_steps), at::kDouble);
  parts_.mesh.world().broadcast(num_steps, 0);
  optimizer_->set_num_steps(static_cast<int64_t>(num_steps.item<double>()));
  parallel::Communicator& alike = parts_.mesh.alike();
  const at::Tensor& values = parts_.parameters.flat_values();
  alike.broadcast(values, 0);
  if (adapters_ && resumed) adapters_->share(alike);
  if (adapters_ && !resumed) adapters_->start();
  const auto& states = optimizer_->states();
  for (size_t i = 0; i < states.size() && resumed; ++i) {
    const at::Tensor whole = loaded_.flats.empty() ? at::empty_like(values)
                                                   : loaded_.flats[i].second.to(values.device());
    alike.broadcast(whole, 0);
    states[i].second.copy_(shards_->own(whole));
  }
  loaded_ = {};
  if (average_) average_->set_num_updates(optimizer_->num_steps());
}

void TrainingStep::begin() {
  shards_->take_values();
  optimizer_->set_parts(
      own_parts());  // the reducer may have moved the gradients, shards the values
  if (!parts_.device.is_cuda()) return;
  recorder_.start(options_.train.cuda_graph,
                  parts_.datasets.size() > 1
                      ? "several datasets"
                      : why_not_recorded(options_.train.precision, options_.sharding,
                                         options_.reduction, parts_.network, parts_.mesh),
                  parts_.mesh.world());
}

void TrainingStep::start(int64_t step) {
  reducer_->start_step(step);
}

// Seeds the network's noise by the position in training and the replica alone.
void TrainingStep::seed_noise(const StepPass& pass) const {
  if (!parts_.network.has_noise()) return;
  const std::array<uint32_t, 3> place{pass.place[0], pass.place[1],
                                      static_cast<uint32_t>(parts_.mesh.replica())};
  at::manual_seed(derive_seed(options_.seed, SeedContext::kModel, place));
}

std::vector<at::Tensor> TrainingStep::values_of(const Batches& batch) const {
  std::vector<at::Tensor> values;
  for (const data::Batch& part : batch)
    values.push_back(part.values.to(parts_.device, parts_.parameters.dtype()));
  return values;
}

at::Tensor TrainingStep::loss_of(const Batches& batch, const std::vector<at::Tensor>& values,
                                 const StepPass& pass) const {
  seed_noise(pass);
  const std::vector<StepDataset>& datasets = parts_.datasets;
  std::vector<LossCall> calls;
  for (size_t d = 0; d < datasets.size(); ++d)
    calls.push_back(
        call_of_batch(datasets[d].loss_nodes, batch[d].nan_mask, datasets[d].variables, values[d]));
  at::Tensor total;
  forecaster_.run(values, pass.rollout, [&](const ForecastStep& step) {
    const size_t d = step.dataset;
    const at::Tensor value = (*datasets[d].loss)(step.prediction, step.truth, calls[d]);
    total = total.defined() ? total + value : value;
  });
  return total.defined() ? total / static_cast<double>(pass.rollout) : total;
}

void TrainingStep::forecast(const std::vector<at::Tensor>& values, const StepPass& pass,
                            const std::function<void(const ForecastStep&)>& visit) const {
  seed_noise(pass);
  forecaster_.run(values, pass.rollout, visit);
}

int64_t TrainingStep::divisor(const StepPass& pass) const {
  return options_.train.accumulation == Accumulation::kMean ? pass.batches
                                                            : options_.train.accumulate_batches;
}

void TrainingStep::start_pass(const Batches& batch, const StepPass& pass) {
  shards_->start_pass(pass.rollout);
  shards_->fetch(0);
  const PartTimer::Scope scope(timer_, Part::kForward);
  batch_ = &batch;
  pass_ = pass;
  values_ = values_of(batch);
  recorded_ = batch[0].nan_mask.defined()
                  ? nullptr
                  : recorder_.pass(
                        {pass.rollout, values_[0].size(0), divisor(pass), pass.last}, values_[0],
                        [&](const at::Tensor& x) { return loss_of(batch, {x}, pass); },
                        [&](const at::Tensor& loss) { add_gradients(loss, pass); });
}

at::Tensor TrainingStep::forward() {
  const PartTimer::Scope scope(timer_, Part::kForward);
  const std::vector<at::Tensor> values = std::move(values_);  // gone before the backward pass
  values_.clear();
  return recorded_ ? recorded_->loss_of(values[0]) : loss_of(*batch_, values, pass_);
}

double TrainingStep::value_of(const at::Tensor& loss) {
  const PartTimer::Scope scope(timer_, Part::kForward);
  return loss.item<double>();
}

void TrainingStep::add_gradients(const at::Tensor& loss, const StepPass& pass) {
  reducer_->start_pass(pass.rollout, pass.last);
  {
    const PartTimer::Scope scope(timer_, Part::kBackward);
    (loss * (loss_scale_.value() / static_cast<double>(divisor(pass)))).backward();
  }
  const PartTimer::Scope scope(timer_, Part::kCommunication);
  reducer_->end_pass();
}

void TrainingStep::backward(const at::Tensor& loss, const StepPass& pass) {
  if (recorded_) return recorded_->add_gradients();
  if (loss.requires_grad()) add_gradients(loss, pass);
}

// A rank that shares neither samples nor values works alone until gradients are summed.
bool TrainingStep::works_alone() const {
  const parallel::MeshSizes& sizes = parts_.mesh.sizes();
  return sizes.model * sizes.tensor * sizes.pipeline == 1 && !shards_->has_taken();
}

bool TrainingStep::finish_gradients() {
  const std::vector<at::Tensor> gradients = reducer_->own_gradients().all();
  if (loss_scale_.active()) {
    for (const at::Tensor& part : gradients)
      part.div_(loss_scale_.value());
  }
  return are_finite(gradients);
}

double TrainingStep::update(double lr) {
  is_updating_ = true;
  if (adapters_) adapters_->pull_gradients();
  const double norm = clipped_step(*optimizer_, lr, reducer_->own_gradients(),
                                   options_.optimizer.clip, options_.optimizer.clip_limit);
  if (adapters_) adapters_->merge();
  if (average_) average_->update(shards_->local_values());
  shards_->publish();
  is_updating_ = false;
  return norm;
}

void TrainingStep::finish(bool updated) {
  const double scale = loss_scale_.value();
  loss_scale_.update(updated);
  if (!updated || loss_scale_.value() != scale) reducer_->forget();
}

double TrainingStep::run_pass(const Batches& batch, const StepPass& pass) {
  AIFS_CHECK(parts_.mesh.sizes().pipeline == 1, "stages of a pipeline need a schedule of passes");
  parallel::Communicator& world = parts_.mesh.world();
  start_pass(batch, pass);
  const at::Tensor loss = forward();
  // The trainer's ranks meet here, too: no gradients of a loss that is not finite anywhere.
  const double mean =
      parallel::sum_over(world, {value_of(loss)})[0] / static_cast<double>(world.size());
  if (std::isfinite(mean)) backward(loss, pass);
  return mean;
}

TrainingStep::Result TrainingStep::run(int64_t step, const std::vector<Batches>& batches,
                                       int64_t rollout, double lr) {
  const auto count = static_cast<int64_t>(batches.size());
  Result result;
  start(step);
  for (int64_t i = 0; i < count; ++i) {
    const StepPass pass{.rollout = rollout,
                        .batches = count,
                        .last = i + 1 == count,
                        .place = {0, static_cast<uint32_t>(step * count + i)}};
    const double loss = run_pass(batches[static_cast<size_t>(i)], pass);
    result.loss += loss;
    result.updated = result.updated && std::isfinite(loss);
  }
  result.loss /= static_cast<double>(count);
  end_passes();
  const PartTimer::Scope scope(timer_, Part::kOptimizer);
  const bool bad = !result.updated || !finish_gradients();
  result.updated = !parallel::on_any_rank(parts_.mesh.world(), bad);
  if (result.updated) result.gradient_norm = update(lr);
  finish(result.updated);
  return result;
}

}  // namespace aifs::train
