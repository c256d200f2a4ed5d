// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cuda/adamw.h"

#include "model/kernels/cuda/row_tile.cuh"

namespace aifs::model::cuda {

namespace {

// True if the gradient was clipped; NaN stays.
__device__ bool clip(const AdamWStep& s, float& gradient) {
  const bool clipped = fabsf(gradient) > s.clip;
  if (clipped) gradient = copysignf(s.clip, gradient);
  return clipped;
}

__device__ void update(const AdamWStep& s, float& value, float gradient, float& m, float& v) {
  value *= s.decay;
  m += (1.0f - s.beta1) * (gradient - m);
  v = s.beta2 * v + (1.0f - s.beta2) * gradient * gradient;
  value -= s.step_size * m / (sqrtf(v) / s.root_correction2 + s.eps);
}

// Four elements a thread; the buffers are aligned, the last elements may be fewer.
__global__ void __launch_bounds__(kThreads) adamw_kernel(AdamWStep s) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 4;
  if (i + 4 > s.size) {
    for (int64_t j = i; j < s.size; ++j) {
      clip(s, s.gradient[j]);
      update(s, s.value[j], s.gradient[j], s.moment1[j], s.moment2[j]);
    }
    return;
  }
  auto* value = reinterpret_cast<float4*>(s.value + i);
  auto* gradient = reinterpret_cast<float4*>(s.gradient + i);
  auto* m = reinterpret_cast<float4*>(s.moment1 + i);
  auto* v = reinterpret_cast<float4*>(s.moment2 + i);
  float4 p = *value, g = *gradient, a = *m, b = *v;
  const bool clipped[] = {clip(s, g.x), clip(s, g.y), clip(s, g.z), clip(s, g.w)};
  if (clipped[0] || clipped[1] || clipped[2] || clipped[3]) *gradient = g;
  update(s, p.x, g.x, a.x, b.x);
  update(s, p.y, g.y, a.y, b.y);
  update(s, p.z, g.z, a.z, b.z);
  update(s, p.w, g.w, a.w, b.w);
  *value = p;
  *m = a;
  *v = b;
}

}  // namespace

void adamw_step(const AdamWStep& step, cudaStream_t stream) {
  if (step.size == 0) return;
  const int64_t threads = (step.size + 3) / 4;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  adamw_kernel<<<blocks, kThreads, 0, stream>>>(step);
  check_launch("adamw");
}

}  // namespace aifs::model::cuda
