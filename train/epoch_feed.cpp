// SPDX-License-Identifier: Apache-2.0
#include "train/epoch_feed.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/check.h"
#include "core/cores.h"
#include "core/file_io.h"
#include "parallel/gather_text.h"

namespace aifs::train {

std::vector<data::FeedSource> EpochFeed::sources() const {
  std::vector<data::FeedSource> sources;
  for (const TrainingDataset& d : setup_.datasets)
    sources.push_back({d.source, d.loading});
  return sources;
}

std::vector<const data::DatasetInfo*> EpochFeed::infos() const {
  std::vector<const data::DatasetInfo*> all;
  for (const TrainingDataset& d : setup_.datasets)
    all.push_back(&d.info());
  return all;
}

void EpochFeed::check_samples() const {
  check_training_samples(infos(), setup_.window, setup_.train.longest_rollout());
}

std::vector<data::BatchRequest> EpochFeed::requests_of_epoch(const LoopState& start) const {
  std::vector<const data::DatasetInfo*> further = infos();
  further.erase(further.begin());
  return train::requests_of_epoch(
      {setup_.datasets[0].info(), setup_.window, setup_.sampling, setup_.train, further}, start);
}

void EpochFeed::check_same_dates(const LoopState& start,
                                 const std::vector<data::BatchRequest>& requests) const {
  const parallel::ProcessMesh& mesh = setup_.mesh;
  if (mesh.model().size() * mesh.tensor().size() * mesh.pipeline().size() == 1) return;
  std::string dates;
  for (const data::BatchRequest& request : requests) {
    for (const int64_t anchor : request.anchors)
      dates += concat(setup_.datasets[0].info().dates_s[static_cast<size_t>(anchor)], ' ');
  }
  const std::string hash = sha256_hex(dates);
  for (parallel::Communicator* group : {&mesh.model(), &mesh.tensor(), &mesh.pipeline()})
    parallel::require_same(*group, concat("dates of epoch ", start.epoch), hash);
}

void EpochFeed::add_next_epoch() {
  const TrainOptions& train = setup_.train;
  if (train.max_epochs > 0 && next_fed_.epoch >= train.max_epochs) return;
  if (train.max_steps > 0 && next_fed_.step >= train.max_steps) return;
  std::vector<data::BatchRequest> requests = requests_of_epoch(next_fed_);
  const int64_t accumulated = train.accumulate_batches;
  const auto whole = static_cast<int64_t>(requests.size());
  const int64_t steps = (whole + accumulated - 1) / accumulated;
  // Nothing is read beyond the last step.
  if (train.max_steps > 0 && next_fed_.step + steps > train.max_steps)
    requests.resize(static_cast<size_t>((train.max_steps - next_fed_.step) * accumulated));
  check_same_dates(next_fed_, requests);
  fed_epochs_.push_back(whole);
  next_fed_ = {.step = next_fed_.step + steps, .epoch = next_fed_.epoch + 1};
  if (setup_.resident_data || requests.empty()) return;
  for (const data::BatchRequest& request : requests)
    fed_samples_.push_back(static_cast<int64_t>(request.anchors.size()));
  if (feed_) {
    feed_->add(requests);
  } else {
    feed_ = std::make_unique<data::JointFeed>(sources(), requests, setup_.device);
  }
}

int64_t EpochFeed::begin_epoch(const LoopState& state) {
  if (fed_epochs_.empty()) {
    end();
    next_fed_ = state;
    add_next_epoch();
  }
  try {
    add_next_epoch();
  } catch (const DataError&) {
    // Too few samples for its rollout: an error when it begins, not while this one can be done.
  }
  const int64_t batches = fed_epochs_.front();
  fed_epochs_.pop_front();
  return batches;
}

void EpochFeed::end() {
  feed_.reset();
  fed_epochs_.clear();
  fed_samples_.clear();
  waited_before_s_ = 0.0;
}

void EpochFeed::next(StepFigures& figures, const LoopState& state, const data::GiveUp& give_up) {
  const bool missing = figures.gave_up || figures.failure;  // a batch of this step, earlier
  int64_t samples = setup_.sampling.batch_size;
  if (!fed_samples_.empty()) {
    samples = fed_samples_.front();
    fed_samples_.pop_front();
  }
  try {
    if (setup_.resident_data) {
      const int64_t times = setup_.window.num_times(figures.rollout);
      if (resident_.empty() || resident_[0].values.size(1) != times)
        resident_ = first_batch(state, figures.rollout);
      batch_ = resident_;
      return;
    }
    const std::shared_ptr<void> work = setup_.mesh.world().at_work("reading data");
    if (!missing) feed_->next(batch_, give_up);
    if (!missing) return;
  } catch (const data::GivenUp&) {
    figures.gave_up = true;
  } catch (const std::exception&) {
    figures.failure = std::current_exception();
  }
  zeros_instead(samples, figures.rollout);
}

void EpochFeed::zeros_instead(int64_t samples, int64_t rollout) {
  batch_.clear();
  const at::TensorOptions options = at::TensorOptions(setup_.device);
  for (const TrainingDataset& d : setup_.datasets) {
    const int64_t nodes = d.loading.nodes.size(), variables = d.info().num_variables();
    data::Batch& zeros = batch_.emplace_back();
    zeros.values = at::zeros(
        {samples, setup_.window.num_times(rollout), d.info().ensemble_size, nodes, variables},
        options.dtype(at::kFloat));
    if (!d.source.imputer.empty())
      zeros.nan_mask = at::zeros({samples, nodes, variables}, options.dtype(at::kByte));
  }
}

void EpochFeed::read_again(const std::vector<int64_t>& anchors, int64_t rollout) {
  data::JointFeed(sources(), {{anchors, setup_.window.offsets(rollout)}}, setup_.device)
      .next(batch_);
}

Batches EpochFeed::first_batch(const LoopState& state, int64_t rollout) const {
  const data::BatchRequest request = requests_of_epoch(state).front();
  Batches batches =
      data::read_batches(sources(), {request.anchors, setup_.window.offsets(rollout)});
  for (data::Batch& batch : batches) {
    batch.values = batch.values.to(setup_.device);
    if (batch.nan_mask.defined()) batch.nan_mask = batch.nan_mask.to(setup_.device);
  }
  return batches;
}

double EpochFeed::take_wait_s() {
  const double waited_s = feed_ ? feed_->wait_s() : 0.0;
  return waited_s - std::exchange(waited_before_s_, waited_s);
}

std::string EpochFeed::watch(const StepFigures& figures) {
  if (!setup_.mesh.is_main() || setup_.resident_data) return "";
  if (!watch_) {
    int64_t threads = 0;
    for (const TrainingDataset& d : setup_.datasets)
      threads += d.loading.threads;
    watch_.emplace(threads, usable_cores());
  }
  return watch_->add_step(figures.step_s, figures.data_s, feed_->busy_s());
}

}  // namespace aifs::train
