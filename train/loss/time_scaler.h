// SPDX-License-Identifier: Apache-2.0
// Weights of output times, one by one: the scaler "time_steps".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

// (T), fp32: the weights, or 1 / T each if there are none. Throws ConfigError for another number of
// them; `path` is that of the scaler.
at::Tensor time_weights(const std::vector<double>& weights, int64_t times,
                        const std::string& path = "loss");

struct TimeStepsKind : WeightsKind {
  std::vector<double> time_weights;  // empty: uniform

  void bind_settings(config::Binder& b) override;
  void become_unnamed() override { norm = WeightNorm::kUnitSum; }
  void validate(const std::string& path) const override;
  void check_times(int64_t times_out, const std::string& path) const override;
  std::vector<Axis> axes() const override { return {kTime}; }
  const char* key_to_use() const override {
    return time_weights.empty() ? nullptr : "time_weights";
  }
  at::Tensor weights(const ScalerPlace& place) const override;
};

}  // namespace aifs::train
