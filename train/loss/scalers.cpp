// SPDX-License-Identifier: Apache-2.0
#include "train/loss/scalers.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"

namespace aifs::train {

bool Scaler::acts_on(Axis axis) const {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

at::Tensor weights_of(const std::vector<double>& weights) {
  return at::tensor(weights, at::kDouble).to(at::kFloat);
}

at::Tensor normalise_weights(const at::Tensor& weights, WeightNorm norm) {
  switch (norm) {
    case WeightNorm::kNone:
      return weights;
    case WeightNorm::kUnitSum:
      return weights / weights.sum();
    case WeightNorm::kUnitMean:
      return weights / weights.mean();
  }
  return weights;
}

Scaler over_axes(std::string name, const at::Tensor& values, std::vector<Axis> axes) {
  AIFS_CHECK(
      values.dim() == static_cast<int64_t>(axes.size()) && std::is_sorted(axes.begin(), axes.end()),
      "scaler '", name, "' of shape ", values.sizes(), " over ", axes.size(), " axes");
  std::vector<int64_t> shape(5, 1);
  for (size_t i = 0; i < axes.size(); ++i)
    shape[static_cast<size_t>(axes[i])] = values.size(static_cast<int64_t>(i));
  return {std::move(name), values.reshape(shape), std::move(axes)};
}

Scaler over_axis(std::string name, const at::Tensor& values, Axis axis) {
  return over_axes(std::move(name), values, {axis});
}

}  // namespace aifs::train
