// SPDX-License-Identifier: Apache-2.0
#include "train/loss/time_scaler.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

at::Tensor time_weights(const std::vector<double>& weights, int64_t times,
                        const std::string& path) {
  if (weights.empty()) return at::full({times}, 1.0 / static_cast<double>(times), at::kFloat);
  if (std::ssize(weights) != times) {
    throw ConfigError(path + ".time_weights", concat("has ", weights.size(), " values for ", times,
                                                     " output times (data.multistep_output)"));
  }
  return weights_of(weights);
}

void TimeStepsKind::bind_settings(config::Binder& b) {
  b.number_list("time_weights", time_weights, {.min = 0.0},
                {"weights of the output times of one step; empty weighs them equally"});
}

void TimeStepsKind::validate(const std::string& path) const {
  if (!time_weights.empty() &&
      std::all_of(time_weights.begin(), time_weights.end(), [](double w) { return w == 0.0; })) {
    throw ConfigError(path + ".time_weights", "are all 0: nothing is left to learn from");
  }
}

void TimeStepsKind::check_times(int64_t times_out, const std::string& path) const {
  train::time_weights(time_weights, times_out, path);
}

at::Tensor TimeStepsKind::weights(const ScalerPlace& place) const {
  return train::time_weights(time_weights, place.inputs.times_out, place.path);
}

}  // namespace aifs::train
