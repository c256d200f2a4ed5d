// SPDX-License-Identifier: Apache-2.0
#include "train/optim/precision.h"

#include <ATen/core/Tensor.h>

#include "core/check.h"

namespace aifs::train {

at::ScalarType weight_type(Precision precision) {
  return precision == Precision::kFp64 ? at::kDouble : at::kFloat;
}

at::ScalarType activation_type(Precision precision) {
  if (precision == Precision::kBf16Mixed) return at::kBFloat16;
  if (precision == Precision::kFp16Mixed) return at::kHalf;
  return weight_type(precision);
}

void LossScale::restore(double scale, int64_t good_steps) {
  AIFS_CHECK(scale > 0.0 && good_steps >= 0, "a loss scale of ", scale);
  scale_ = scale;
  good_steps_ = good_steps;
}

void LossScale::update(bool finite) {
  if (!active_) return;
  if (!finite) {
    scale_ *= kBackoff;
    good_steps_ = 0;
  } else if (++good_steps_ == kInterval) {
    scale_ *= kGrowth;
    good_steps_ = 0;
  }
}

}  // namespace aifs::train
