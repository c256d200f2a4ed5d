// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows over the last axis (population variance), plain or conditional.
//   plain:        n(x) * weight + bias
//   conditional:  n(x) * (scale(c) + 1) + bias(c), scale and bias linear maps that start at zero
// where c has a row for every row of x (noise, in ensembles).
#pragma once

#include "model/layers/linear.h"

namespace aifs::model {

struct LayerNormOptions {
  double eps = 1e-5;
  int64_t condition_width = 0;  // 0: plain
  bool bias = true;             // plain only
  bool zero_init = true;        // conditional only: the maps start at zero
  bool of_slices = false;       // plain only: each tensor rank has other rows (its own heads)
};

struct SumAndNormed {
  at::Tensor sum, normed;
};

class LayerNorm {
 public:
  LayerNorm() = default;
  LayerNorm(const ParameterScope& scope, int64_t width, const LayerNormOptions& options = {});

  // x (..., width). A conditional norm needs `condition` (rows of x, condition_width).
  at::Tensor forward(const at::Tensor& x, const at::Tensor& condition = {}) const;

  // x + addend (undefined: x) and its norm. Where a kernel does it, so does one for the sum of both
  // gradients.
  SumAndNormed forward_sum(const at::Tensor& x, const at::Tensor& addend,
                           const at::Tensor& condition = {}) const;

  // Returns the epsilon of a plain norm.
  double eps() const { return options_.eps; }
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  bool is_narrow(const at::Tensor& x) const;

  LayerNormOptions options_;
  int64_t width_ = 0;
  at::Tensor weight_, bias_;
  TensorRanks ranks_;  // over which gradients are summed
  Linear scale_map_, bias_map_;
};

}  // namespace aifs::model
