// SPDX-License-Identifier: Apache-2.0
#include "train/loss/huber.h"

#include <ATen/ATen.h>

namespace aifs::train {

PointwiseError huber_error(double delta) {
  return {.of = [delta](const at::Tensor& difference) {
    const at::Tensor size = difference.abs();
    return at::where(size < delta, 0.5 * size.square(), delta * (size - 0.5 * delta));
  }};
}

void HuberKind::bind(config::Binder& b) {
  b.number("delta", delta, {.min = 1e-9},
           {"where the error turns from quadratic to linear", "normalised"});
  b.formerly("huber_delta");
}

}  // namespace aifs::train
