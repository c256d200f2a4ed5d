// SPDX-License-Identifier: Apache-2.0
#include "train/loss/mae.h"

#include <ATen/ATen.h>

namespace aifs::train {

PointwiseError mae_error() {
  return {.of = [](const at::Tensor& difference) { return difference.abs(); }};
}

}  // namespace aifs::train
