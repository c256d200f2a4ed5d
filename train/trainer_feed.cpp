// SPDX-License-Identifier: Apache-2.0
// Where the trainer's batches come from: one feed for all epochs, so that the first batches of an
// epoch are read while the one before it ends.
#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "core/cores.h"
#include "core/file_io.h"
#include "core/log.h"
#include "parallel/gather_text.h"
#include "train/epoch_requests.h"
#include "train/step_figures.h"

namespace aifs::train {

std::vector<data::BatchRequest> Trainer::requests_of_epoch(const LoopState& start) const {
  std::vector<const data::DatasetInfo*> further = infos();
  further.erase(further.begin());
  return train::requests_of_epoch({info(), parts_.window, parts_.sampling, options_.train, further},
                                  start);
}

void Trainer::check_same_dates(const LoopState& start,
                               const std::vector<data::BatchRequest>& requests) const {
  const parallel::ProcessMesh& mesh = parts_.mesh;
  if (mesh.model().size() * mesh.tensor().size() * mesh.pipeline().size() == 1) return;
  std::string dates;
  for (const data::BatchRequest& request : requests) {
    for (const int64_t anchor : request.anchors)
      dates += concat(info().dates_s[static_cast<size_t>(anchor)], ' ');
  }
  const std::string hash = sha256_hex(dates);
  for (parallel::Communicator* group : {&mesh.model(), &mesh.tensor(), &mesh.pipeline()})
    parallel::require_same(*group, concat("dates of epoch ", start.epoch), hash);
}

void Trainer::feed_next_epoch() {
  const TrainOptions& train = options_.train;
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
  if (options_.resident_data || requests.empty()) return;
  for (const data::BatchRequest& request : requests)
    fed_samples_.push_back(static_cast<int64_t>(request.anchors.size()));
  if (feed_) {
    feed_->add(requests);
  } else {
    feed_ = std::make_unique<data::JointFeed>(feed_sources(), requests, parts_.device);
  }
}

int64_t Trainer::begin_epoch() {
  if (fed_epochs_.empty()) {
    end_feed();
    next_fed_ = state_;
    feed_next_epoch();
  }
  try {
    feed_next_epoch();
  } catch (const DataError&) {
    // Too few samples for its rollout: an error when it begins, not while this one can be done.
  }
  const int64_t batches = fed_epochs_.front();
  fed_epochs_.pop_front();
  return batches;
}

void Trainer::end_feed() {
  feed_.reset();
  fed_epochs_.clear();
  fed_samples_.clear();
  waited_before_s_ = 0.0;
}

void Trainer::take_batch(StepFigures& figures) {
  const PartTimer::Scope scope(timer_, Part::kData);
  const bool missing = figures.gave_up || figures.failure;  // a batch of this step, earlier
  int64_t samples = parts_.sampling.batch_size;
  if (!fed_samples_.empty()) {
    samples = fed_samples_.front();
    fed_samples_.pop_front();
  }
  try {
    if (options_.resident_data) {
      const int64_t times = parts_.window.num_times(figures.rollout);
      if (resident_.empty() || resident_[0].values.size(1) != times)
        resident_ = first_batch(figures.rollout);
      batch_ = resident_;
      return;
    }
    const std::shared_ptr<void> work = parts_.mesh.world().at_work("reading data");
    if (!missing) feed_->next(batch_, [this] { return wants_to_stop(); });
    if (!missing) return;
  } catch (const data::GivenUp&) {
    figures.gave_up = true;
  } catch (const std::exception&) {
    figures.failure = std::current_exception();
  }
  batch_.clear();
  for (size_t d = 0; d < datasets_.size(); ++d) {
    const int64_t nodes = datasets_[d].loading.nodes.size();
    const at::TensorOptions options = at::TensorOptions(parts_.device);
    data::Batch& zeros = batch_.emplace_back();
    zeros.values = at::zeros({samples, parts_.window.num_times(figures.rollout),
                              info(d).ensemble_size, nodes, info(d).num_variables()},
                             options.dtype(at::kFloat));
    if (!datasets_[d].source.imputer.empty())
      zeros.nan_mask =
          at::zeros({samples, nodes, info(d).num_variables()}, options.dtype(at::kByte));
  }
}

Trainer::Batches Trainer::first_batch(int64_t rollout) const {
  const data::BatchRequest request = requests_of_epoch(state_).front();
  Batches batches =
      data::read_batches(feed_sources(), {request.anchors, parts_.window.offsets(rollout)});
  for (data::Batch& batch : batches) {
    batch.values = batch.values.to(parts_.device);
    if (batch.nan_mask.defined()) batch.nan_mask = batch.nan_mask.to(parts_.device);
  }
  return batches;
}

void Trainer::watch_feed(const StepFigures& figures) {
  if (!parts_.mesh.is_main() || options_.resident_data) return;
  if (!feed_watch_) {
    int64_t threads = 0;
    for (const FurtherDataset& d : datasets_)
      threads += d.loading.threads;
    feed_watch_.emplace(threads, usable_cores());
  }
  const std::string text = feed_watch_->add_step(figures.step_s, figures.data_s, feed_->busy_s());
  if (text.empty()) return;
  log_->clear_progress();
  log::warning(text);
}

}  // namespace aifs::train
