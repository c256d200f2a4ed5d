// SPDX-License-Identifier: Apache-2.0
// Mean squared error, and its root. The root is taken of the whole sum: it is not a sum over
// variables or over the ranks of a sample.
#pragma once

#include "train/loss/loss_kind.h"

namespace aifs::train {

PointwiseError rmse_error();

struct MseKind : PointwiseKind {
  PointwiseError error() const override { return mse_error(); }
};

struct RmseKind : PointwiseKind {
  PointwiseError error() const override { return rmse_error(); }
};

}  // namespace aifs::train
