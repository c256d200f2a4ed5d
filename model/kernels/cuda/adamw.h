// SPDX-License-Identifier: Apache-2.0
// AdamW with clipping by value on a range of the flat buffers, in one pass.
#pragma once

#include "model/kernels/cuda/rows.h"

namespace aifs::model::cuda {

struct AdamWStep {
  float *value, *gradient, *moment1, *moment2;  // `size` fp32 each; the gradient gets clipped
  int64_t size = 0;
  float clip = 0.0f;   // largest absolute gradient; infinity: none
  float decay = 1.0f;  // 1 - learning rate * weight decay
  float beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f;
  float step_size = 0.0f;         // learning rate / (1 - beta1^t)
  float root_correction2 = 1.0f;  // sqrt(1 - beta2^t)
};
void adamw_step(const AdamWStep& step, cudaStream_t stream);

}  // namespace aifs::model::cuda
