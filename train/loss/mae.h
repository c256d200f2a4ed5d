// SPDX-License-Identifier: Apache-2.0
// Mean absolute error.
#pragma once

#include "train/loss/loss_kind.h"

namespace aifs::train {

PointwiseError mae_error();

struct MaeKind : PointwiseKind {
  PointwiseError error() const override { return mae_error(); }
};

}  // namespace aifs::train
