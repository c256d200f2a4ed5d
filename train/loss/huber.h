// SPDX-License-Identifier: Apache-2.0
// Huber's loss: quadratic for small errors, linear for large ones, which bounds the gradient of an
// outlier by delta.
#pragma once

#include "train/loss/loss_kind.h"

namespace aifs::train {

// d^2 / 2 for |d| < delta, else delta (|d| - delta / 2).
PointwiseError huber_error(double delta);

struct HuberKind : PointwiseKind {
  double delta = 1.0;  // of normalised values

  void bind(config::Binder& b) override;
  PointwiseError error() const override { return huber_error(delta); }
};

}  // namespace aifs::train
