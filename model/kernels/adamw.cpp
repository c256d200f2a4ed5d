// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/adamw.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "model/kernels/simd.h"

namespace aifs::model::cpu {

namespace {

AIFS_SIMD void update_values(const AdamWValues& s, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    float g = s.gradient[i];
    g = g > s.clip ? s.clip : g < -s.clip ? -s.clip : g;
    const float m = s.moment1[i] + s.lerp * (g - s.moment1[i]);
    const float v = s.moment2[i] * s.beta2 + s.square * g * g;
    s.gradient[i] = g;
    s.moment1[i] = m;
    s.moment2[i] = v;
    s.value[i] = s.value[i] * s.decay + s.step * (m / (std::sqrt(v) / s.root_correction2 + s.eps));
  }
}

}  // namespace

void adamw_step(const AdamWValues& values, int64_t size) {
  constexpr int64_t kGrain = 16384;
  at::parallel_for(0, size, kGrain,
                   [&](int64_t first, int64_t last) { update_values(values, first, last); });
}

}  // namespace aifs::model::cpu
