// SPDX-License-Identifier: Apache-2.0
#include "train/epoch_requests.h"

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

namespace {

int64_t ratio_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

data::Sampler sampler_of(const EpochSetup& setup, int64_t longest) {
  const std::vector<int64_t> offsets = setup.window.offsets(longest);
  const auto usable = [&](const data::DatasetInfo& info) {
    return data::usable_anchors(info.num_rows(), info.missing_rows, offsets);
  };
  if (setup.further.empty()) return {usable(setup.info), setup.sampling};
  std::vector<std::vector<int64_t>> all{usable(setup.info)};
  for (const data::DatasetInfo* info : setup.further)
    all.push_back(usable(*info));
  return {data::common_anchors(all), setup.sampling};
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
    // What the run does not get to need not be there.
    if (sampler_of(setup, longest + 1).batches_per_epoch() == 0 &&
        longest >= setup.train.longest_rollout())
      return sampler;
    ++longest;
  }
}

}  // namespace

std::vector<data::BatchRequest> requests_of_epoch(const EpochSetup& setup, const LoopState& state) {
  const data::Sampler sampler = sampler_of_epoch(setup, state);
  if (sampler.num_samples() == 0 && !setup.further.empty()) {
    throw DataError(concat("'", setup.info.name, "' and '", setup.further[0]->name,
                           "' have no training sample of the same dates"),
                    "widen data.training.start and end");
  }
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
