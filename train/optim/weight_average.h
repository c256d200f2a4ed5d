// SPDX-License-Identifier: Apache-2.0
// Averages of the weights over training steps: exponential (EMA) or running mean (SWA), as
// PyTorch's AveragedModel without averaged buffers. The first update copies.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/enum_names.h"

namespace aifs::train {

enum class AverageKind { kNone, kExponential, kMean };

class WeightAverage {
 public:
  // Exponential: average = decay * average + (1 - decay) * weights; the mean ignores `decay`.
  explicit WeightAverage(AverageKind kind, double decay = 0.999) : kind_(kind), decay_(decay) {}

  // Makes values() now, as zeros, so that they can be restored from a checkpoint that had so many
  // updates.
  void prepare(const at::Tensor& like);
  void set_num_updates(int64_t updates) { num_updates_ = updates; }

  // Takes the present weights in, after an optimiser step; any shape, always the same.
  void update(const at::Tensor& weights);

  // Undefined before prepare() and the first update.
  const at::Tensor& values() const { return values_; }
  int64_t num_updates() const { return num_updates_; }

 private:
  AverageKind kind_;
  double decay_;
  at::Tensor values_;
  int64_t num_updates_ = 0;
};

constexpr auto enum_table(AverageKind) {
  using enum AverageKind;
  return std::to_array<EnumName<AverageKind>>(
      {{kNone, "none"}, {kExponential, "ema"}, {kMean, "mean"}});
}

}  // namespace aifs::train
