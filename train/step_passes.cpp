// SPDX-License-Identifier: Apache-2.0
#include "train/step_passes.h"

#include <ATen/ATen.h>

#include <cmath>

#include "core/check.h"
#include "train/pipeline_schedule.h"

namespace aifs::train {

void StepPasses::run(StepFigures& figures, LoopState& state) {
  const int64_t batches = figures.batches;
  const parallel::StageLinks& stages = mesh_.stage_links();
  // Stages meet several times in a rollout: one batch after the other.
  const bool overlaps = figures.rollout == 1;
  run_passes(
      one_forward_one_backward(overlaps ? stages.stage() : 0, overlaps ? stages.count() : 1,
                               batches),
      [&](int64_t batch) { return forward(figures, state, batch + 1 == batches); },
      [&](const at::Tensor& total, int64_t batch) {
        backward(total, figures, /*last=*/batch + 1 == batches);
      });
  if (stages.count() > 1) agree_in_pipeline(figures, state);
  figures.loss /= static_cast<double>(batches);
  step_.end_passes();
}

at::Tensor StepPasses::forward(StepFigures& figures, LoopState& state, bool last) {
  if (figures.dropped) return {};
  {
    const PartTimer::Scope scope(step_.timer(), Part::kData);
    feed_.next(figures, state, wants_to_stop_);
  }
  figures.place = {static_cast<uint32_t>(state.epoch),
                   static_cast<uint32_t>(state.batch_in_epoch++)};
  const Batches& batch = feed_.batch();
  step_.start_pass(batch, figures.pass(last));
  at::Tensor total;
  double value = 0.0;
  parallel::StageLinks& stages = mesh_.stage_links();
  const auto pass = [&] {
    total = step_.forward();
    if (stages.count() == 1) value = step_.value_of(total);
  };
  if (!tried(pass, figures)) total = at::Tensor();
  if (stages.count() > 1) {
    figures.losses.add(total, batch[0].anchors);
    return stages.with_sent(total);
  }
  if (agree(figures, value, static_cast<int64_t>(batch[0].anchors.size()))) return total;
  if (!figures.dropped) note_bad_loss(figures, state, value);
  return {};
}

void StepPasses::backward(const at::Tensor& total, StepFigures& figures, bool last) {
  if (!total.defined()) return;
  const auto pass = [&] { step_.backward(total, figures.pass(last)); };
  if (step_.is_recorded()) return pass();
  if (!tried(pass, figures)) step_.abandon_pass();
}

bool StepPasses::tried(const std::function<void()>& pass, StepFigures& figures) const {
  if (!step_.works_alone()) return pass(), true;
  try {
    pass();
    return true;
  } catch (const std::exception&) {
    figures.failure = std::current_exception();
    return false;
  }
}

bool StepPasses::agree(StepFigures& figures, double loss, int64_t samples) const {
  const bool missing = figures.gave_up || figures.failure;
  // The loss is the same on all ranks of a replica.
  const int64_t ranks_per_replica = mesh_.world().size() / mesh_.sizes().data;
  const std::vector<double> sums = parallel::sum_over(
      mesh_.world(), {loss, static_cast<double>(samples), static_cast<double>(wants_to_stop_()),
                      static_cast<double>(missing)});
  figures.loss += sums[0] / static_cast<double>(mesh_.world().size());
  figures.samples += static_cast<int64_t>(sums[1]) / ranks_per_replica;
  figures.stop = figures.stop || sums[2] > 0;
  figures.dropped = figures.dropped || sums[3] > 0;
  return std::isfinite(sums[0]) && !figures.dropped;
}

void StepPasses::agree_in_pipeline(StepFigures& figures, const LoopState& state) {
  const PipelineLosses::Shared losses = figures.losses.share(mesh_.pipeline());
  if (agree(figures, losses.sum, losses.samples) || figures.dropped) return;
  // The report is of this batch, which is read again.
  if (!losses.bad_anchors.empty()) feed_.read_again(losses.bad_anchors, figures.rollout);
  note_bad_loss(figures, state, losses.bad);
}

void StepPasses::note_bad_loss(StepFigures& figures, const LoopState& state, double loss) {
  figures.finite = false;
  step_.shards().fetch_all();
  if (!std::isfinite(loss) && figures.bad.text.empty()) {
    figures.bad = nonfinite_.describe(concat("the loss is ", loss), feed_.batch(), figures, state);
  }
  step_.shards().release_all();
}

}  // namespace aifs::train
