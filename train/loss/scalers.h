// SPDX-License-Identifier: Apache-2.0
// Loss weights as small broadcast factors (Anemoi's scalers). A scaler acts on some of the five
// dimensions of a field (B, T, E, N, V_out); it is never expanded to the whole field.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/enum_names.h"

namespace aifs::train {

// Axes of a field (B, T, E, N, V_out).
enum Axis : int { kBatch = 0, kTime = 1, kEnsemble = 2, kGrid = 3, kVariable = 4 };

struct Scaler {
  std::string name;
  // Five dimensions, size 1 where it does not act; the type of the loss. Undefined: the imputer's
  // mask of the batch at hand.
  at::Tensor factor;
  std::vector<Axis> axes;  // where it acts, even if the field has size 1 there

  bool acts_on(Axis axis) const;
};

enum class WeightNorm { kNone, kUnitSum, kUnitMean };

// Weights as they stand in a configuration, in fp32.
at::Tensor weights_of(const std::vector<double>& weights);
// "unit-sum" divides by the sum, "unit-mean" by the mean, in fp32.
at::Tensor normalise_weights(const at::Tensor& weights, WeightNorm norm);

// Values with one dimension per axis (axes ascending), as a factor of a field.
Scaler over_axes(std::string name, const at::Tensor& values, std::vector<Axis> axes);
Scaler over_axis(std::string name, const at::Tensor& values, Axis axis);

constexpr auto enum_table(WeightNorm) {
  using enum WeightNorm;
  return std::to_array<EnumName<WeightNorm>>(
      {{kNone, "none"}, {kUnitSum, "unit-sum"}, {kUnitMean, "unit-mean"}});
}

}  // namespace aifs::train
