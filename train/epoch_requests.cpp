// SPDX-License-Identifier: Apache-2.0
#include "train/epoch_requests.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

int64_t ratio_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Returns the anchors that all datasets have.
std::vector<int64_t> anchors_of(const std::vector<const data::DatasetInfo*>& datasets,
                                const std::vector<int64_t>& offsets) {
  std::vector<std::vector<int64_t>> anchors;
  for (const data::DatasetInfo* info : datasets)
    anchors.push_back(data::usable_anchors(info->num_rows(), info->missing_rows, offsets));
  return data::common_anchors(anchors);
}

data::Sampler sampler_of(const EpochSetup& setup, int64_t longest) {
  std::vector<const data::DatasetInfo*> all{&setup.info};
  all.insert(all.end(), setup.further.begin(), setup.further.end());
  return {anchors_of(all, setup.window.offsets(longest)), setup.sampling};
}

data::Sampler sampler_of_epoch(const EpochSetup& setup, const LoopState& state) {
  const RolloutOptions& rollout = setup.train.rollout;
  const int64_t accumulate = setup.train.accumulate_batches;
  const int64_t first_step = state.step - ratio_up(state.batch_in_epoch, accumulate);
  int64_t longest = rollout_at(rollout, state.epoch, first_step);
  for (;;) {  // longer rollouts have fewer samples, and an epoch fewer steps to grow in
    data::Sampler sampler = sampler_of(setup, longest);
    const int64_t steps = ratio_up(sampler.batches_per_epoch(), accumulate);
    if (rollout_at(rollout, state.epoch, first_step + std::max<int64_t>(steps, 1) - 1) <= longest)
      return sampler;
    // A rollout that the run does not get to need not have samples.
    if (sampler_of(setup, longest + 1).batches_per_epoch() == 0 &&
        longest >= setup.train.longest_rollout())
      return sampler;
    ++longest;
  }
}

}  // namespace

void check_training_samples(const std::vector<const data::DatasetInfo*>& datasets,
                            const Window& window, int64_t longest) {
  for (const data::DatasetInfo* info : datasets)
    check_training_samples(*info, window, longest);
  const std::vector<int64_t> offsets = window.offsets(longest);
  if (datasets.size() < 2 || !anchors_of(datasets, offsets).empty()) return;
  throw DataError(concat("'", datasets[0]->name, "' and the datasets beside it have no training ",
                         "sample of the same dates; one needs ", offsets.size(),
                         " in a row that none of them misses"),
                  "widen data.training.start and end, or shorten the rollout");
}

std::vector<data::BatchRequest> requests_of_epoch(const EpochSetup& setup, const LoopState& state) {
  const data::Sampler sampler = sampler_of_epoch(setup, state);
  // The longest rollout has samples; a share of them may still be empty.
  if (sampler.batches_per_epoch() == 0) {
    throw DataError(
        concat("'", setup.info.name, "' has ", sampler.num_samples(),
               " training samples, too few for ", setup.sampling.num_groups, " replicas"),
        "widen data.training.start and end, or use fewer replicas");
  }
  std::vector<data::BatchRequest> requests;
  int64_t batch = 0;
  for (std::vector<int64_t>& anchors : sampler.epoch(state.epoch)) {
    const int64_t ahead = batch++ - state.batch_in_epoch;
    if (ahead < 0) continue;  // used before the run was resumed
    const int64_t step = state.step + ahead / setup.train.accumulate_batches;
    requests.push_back({std::move(anchors),
                        setup.window.offsets(rollout_at(setup.train.rollout, state.epoch, step))});
  }
  return requests;
}

}  // namespace aifs::train
