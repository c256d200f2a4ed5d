// SPDX-License-Identifier: Apache-2.0
#include "train/averaged_weights.h"

#include <ATen/ATen.h>

namespace aifs::train {

AveragedWeights::AveragedWeights(const TrainingStep& step, bool& lost)
    : shards_(step.shards()), lost_(lost) {
  const WeightAverage* average = step.average();
  if (average && average->num_updates() > 0) {
    live_ = shards_.local_values().detach().clone();
    lost_ = true;  // until they are back
    shards_.set_local_values(average->values());
  }
  // Replicas may have different numbers of dates: nothing is fetched between them.
  shards_.fetch_all();
}

AveragedWeights::~AveragedWeights() {
  if (is_restored_ || shards_.shard_group().size() > 1) return;  // the others do not take part
  try {
    restore();
  } catch (const std::exception&) {  // `lost` says so
  }
}

void AveragedWeights::restore() {
  is_restored_ = true;
  shards_.release_all();
  if (live_.defined()) shards_.set_local_values(live_);
  lost_ = false;
}

}  // namespace aifs::train
