// SPDX-License-Identifier: Apache-2.0
#include "train/loss/pointwise_error.h"

#include <ATen/ATen.h>

namespace aifs::train {

PointwiseError mse_error() {
  return {.of = [](const at::Tensor& difference) { return difference.square(); },
          .is_square = true};
}

}  // namespace aifs::train
