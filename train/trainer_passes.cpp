// SPDX-License-Identifier: Apache-2.0
// The batches of a training step: reading, forward and backward passes, and what ranks agree on.
#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "core/log.h"
#include "core/rng.h"
#include "train/step_figures.h"

namespace aifs::train {

namespace {

int64_t num_samples(const std::vector<data::Batch>& batch) {
  return static_cast<int64_t>(batch[0].anchors.size());
}

}  // namespace

void Trainer::seed_noise() const {
  if (!parts_.network.has_noise()) return;
  const std::array<uint32_t, 3> place{batch_place_[0], batch_place_[1],
                                      static_cast<uint32_t>(parts_.mesh.replica())};
  at::manual_seed(derive_seed(parts_.sampling.seed, SeedContext::kModel, place));
}

std::vector<at::Tensor> Trainer::values_of(const Batches& batch) const {
  std::vector<at::Tensor> values;
  for (const data::Batch& part : batch)
    values.push_back(part.values.to(parts_.device, parts_.parameters.dtype()));
  return values;
}

at::Tensor Trainer::loss_of(const Batches& batch, const std::vector<at::Tensor>& values,
                            int64_t rollout) {
  seed_noise();
  std::vector<LossCall> calls;
  for (size_t d = 0; d < datasets_.size(); ++d)
    calls.push_back(call_of_batch(datasets_[d].loss_nodes, batch[d].nan_mask,
                                  datasets_[d].variables, values[d]));
  at::Tensor total;
  forecaster_.run(values, rollout, [&](const ForecastStep& step) {
    const size_t d = step.dataset;
    const at::Tensor value = (*datasets_[d].loss)(step.prediction, step.truth, calls[d]);
    total = total.defined() ? total + value : value;
  });
  return total.defined() ? total / static_cast<double>(rollout) : total;
}

void Trainer::add_gradients(const at::Tensor& loss, int64_t rollout, int64_t divisor, bool last) {
  reducer_->start_pass(rollout, last);
  {
    const PartTimer::Scope scope(timer_, Part::kBackward);
    (loss * (loss_scale_.value() / static_cast<double>(divisor))).backward();
  }
  const PartTimer::Scope scope(timer_, Part::kCommunication);
  reducer_->end_pass();
}

int64_t Trainer::gradient_divisor(int64_t batches) const {
  return options_.train.accumulation == Accumulation::kMean ? batches
                                                            : options_.train.accumulate_batches;
}

void Trainer::accumulate_gradients(StepFigures& figures) {
  const int64_t batches = figures.batches;
  const parallel::StageLinks& stages = parts_.mesh.stage_links();
  // Stages meet several times in a rollout: one batch after the other.
  const bool overlaps = figures.rollout == 1;
  run_passes(
      one_forward_one_backward(overlaps ? stages.stage() : 0, overlaps ? stages.count() : 1,
                               batches),
      [&](int64_t batch) { return forward_pass(figures, batch + 1 == batches); },
      [&](const at::Tensor& total, int64_t batch) {
        backward_pass(total, figures, /*last=*/batch + 1 == batches);
      });
  if (stages.count() > 1) agree_in_pipeline(figures);
}

at::Tensor Trainer::forward_pass(StepFigures& figures, bool last) {
  if (figures.dropped) return {};
  take_batch(figures);
  batch_place_ = {static_cast<uint32_t>(state_.epoch),
                  static_cast<uint32_t>(state_.batch_in_epoch++)};
  shards_->start_pass(figures.rollout);
  shards_->fetch(0);
  at::Tensor total;
  double value = 0.0;
  {
    const PartTimer::Scope scope(timer_, Part::kForward);
    const std::vector<at::Tensor> values = values_of(batch_);
    const int64_t rollout = figures.rollout, divisor = gradient_divisor(figures.batches);
    recorded_ =
        batch_[0].nan_mask.defined()
            ? nullptr
            : recorder_.pass(
                  {rollout, values[0].size(0), divisor, last}, values[0],
                  [&](const at::Tensor& x) { return loss_of(batch_, {x}, rollout); },
                  [&](const at::Tensor& loss) { add_gradients(loss, rollout, divisor, last); });
    const auto forward = [&] {
      total = recorded_ ? recorded_->loss_of(values[0]) : loss_of(batch_, values, rollout);
      if (parts_.mesh.stage_links().count() == 1) value = total.item<double>();
    };
    if (!tried(forward, figures)) total = at::Tensor();
  }
  parallel::StageLinks& stages = parts_.mesh.stage_links();
  if (stages.count() > 1) {
    figures.losses.add(total, batch_[0].anchors);
    return stages.with_sent(total);
  }
  if (agree(figures, value, num_samples(batch_))) return total;
  if (!figures.dropped) note_bad_loss(figures, value);
  return {};
}

void Trainer::note_bad_loss(StepFigures& figures, double loss) {
  figures.finite = false;
  shards_->fetch_all();
  if (!std::isfinite(loss) && figures.bad.text.empty())
    figures.bad = describe_nonfinite(concat("the loss is ", loss), figures.rollout);
  shards_->release_all();
}

void Trainer::agree_in_pipeline(StepFigures& figures) {
  const PipelineLosses::Shared losses = figures.losses.share(parts_.mesh.pipeline());
  if (agree(figures, losses.sum, losses.samples) || figures.dropped) return;
  if (!losses.bad_anchors.empty()) {  // the report is of this batch, which is read again
    data::JointFeed(feed_sources(), {{losses.bad_anchors, parts_.window.offsets(figures.rollout)}},
                    parts_.device)
        .next(batch_);
  }
  note_bad_loss(figures, losses.bad);
}

void Trainer::backward_pass(const at::Tensor& total, StepFigures& figures, bool last) {
  if (!total.defined()) return;
  if (recorded_) return recorded_->add_gradients();
  if (!total.requires_grad()) return;
  const auto backward = [&] {
    add_gradients(total, figures.rollout, gradient_divisor(figures.batches), last);
  };
  if (!tried(backward, figures)) reducer_->abandon_pass();
}

// A rank that shares neither samples nor values works alone until gradients are summed.
bool Trainer::works_alone() const {
  const parallel::MeshSizes& sizes = parts_.mesh.sizes();
  return sizes.model * sizes.tensor * sizes.pipeline == 1 && !shards_->has_taken();
}

bool Trainer::tried(const std::function<void()>& pass, StepFigures& figures) const {
  if (!works_alone()) return pass(), true;
  try {
    pass();
    return true;
  } catch (const std::exception&) {
    figures.failure = std::current_exception();
    return false;
  }
}

bool Trainer::agree(StepFigures& figures, double loss, int64_t samples) const {
  const bool missing = figures.gave_up || figures.failure;
  // The loss is the same on all ranks of a replica.
  const int64_t ranks_per_replica = parts_.mesh.world().size() / parts_.mesh.sizes().data;
  const std::vector<double> sums = parallel::sum_over(
      parts_.mesh.world(), {loss, static_cast<double>(samples),
                            static_cast<double>(wants_to_stop()), static_cast<double>(missing)});
  figures.loss += sums[0] / static_cast<double>(parts_.mesh.world().size());
  figures.samples += static_cast<int64_t>(sums[1]) / ranks_per_replica;
  figures.stop = figures.stop || sums[2] > 0;
  figures.dropped = figures.dropped || sums[3] > 0;
  return std::isfinite(sums[0]) && !figures.dropped;
}

}  // namespace aifs::train
