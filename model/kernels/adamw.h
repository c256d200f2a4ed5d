// SPDX-License-Identifier: Apache-2.0
// AdamW with clipping by value on fp32 arrays, in one pass: every element is read and written once,
// and the order of operations is that of LibTorch's operators.
#pragma once

#include <cstdint>

namespace aifs::model::cpu {

struct AdamWValues {
  float *value, *gradient, *moment1, *moment2;  // the gradient gets clipped
  float clip;                                   // largest absolute gradient; infinity: none
  float decay;                                  // 1 - learning rate * weight decay
  float lerp;                                   // 1 - beta1
  float beta2, square;                          // square = 1 - beta2
  float root_correction2;                       // sqrt(1 - beta2^t)
  float eps;
  float step;  // -learning rate / (1 - beta1^t)
};
// Updates `size` elements with the threads of at::parallel_for(); the same bits for any number.
void adamw_step(const AdamWValues& values, int64_t size);

}  // namespace aifs::model::cpu
