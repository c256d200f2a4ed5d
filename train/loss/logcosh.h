// SPDX-License-Identifier: Apache-2.0
// The logarithm of the hyperbolic cosine of the error: d^2 / 2 for small errors, |d| - log 2 for
// large ones.
#pragma once

#include "train/loss/loss_kind.h"

namespace aifs::train {

PointwiseError logcosh_error();

struct LogCoshKind : PointwiseKind {
  PointwiseError error() const override { return logcosh_error(); }
};

}  // namespace aifs::train
