// SPDX-License-Identifier: Apache-2.0
// Weights that the configuration lists: the scaler "values".
#pragma once

#include "train/loss/scaler_kind.h"

namespace aifs::train {

// Row-major values of one dimension for each axis.
struct ValuesKind : WeightsKind {
  std::vector<std::string> axis_names;  // "batch", "time", "ensemble", "grid", "variable"
  std::vector<int64_t> shape;           // empty: one axis
  std::vector<double> values;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::vector<Axis> axes() const override;
  bool needs_name() const override { return true; }
  // Throws ConfigError where outputs, times or nodes are not as many as the values along them.
  at::Tensor weights(const ScalerPlace& place) const override;

 private:
  void check_lengths(const ScalerPlace& place) const;
};

}  // namespace aifs::train
