// SPDX-License-Identifier: Apache-2.0
// GELU(x) = x Phi(x) and its derivative. In fp32 with the error function. For narrower rows with
// Phi(x) = sigmoid(2 x (a + b x^2 + c x^4)), fitted to the error function (not the usual tanh form,
// which is another function): off by at most 2.6e-5, the derivative by 1.1e-4, a hundredth of what
// bfloat16 resolves near 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "model/kernels/cuda/gelu_slope.h"

namespace aifs::model::cuda {

inline constexpr float kGeluA = 0.7975078840f, kGeluB = 0.03700564618f, kGeluC = -0.00035151680886f;

// a + b s + c s^2, and what the derivative of x times that is; s = x^2.
__device__ inline float gelu_polynomial(float s) {
  return kGeluA + s * (kGeluB + s * kGeluC);
}
__device__ inline float gelu_polynomial_slope(float s) {
  return kGeluA + s * (3.0f * kGeluB + s * 5.0f * kGeluC);
}

struct Gelu {
  float value, derivative;
};

template <bool kExact>
__device__ inline Gelu gelu(float x) {
  if constexpr (kExact) {
    const float phi = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
    const float density = 0.3989422804014327f * expf(-0.5f * x * x);
    return {x * phi, phi + x * density};
  } else {
    const float s = fminf(x * x, 36.0f);  // beyond, the polynomial would turn round
    const float phi = __fdividef(1.0f, 1.0f + __expf(-2.0f * x * gelu_polynomial(s)));
    const float slope = 2.0f * gelu_polynomial_slope(s);
    return {x * phi, phi + x * phi * (1.0f - phi) * slope};
  }
}

// Derivatives in 8 bits (model/kernels/cuda/gelu_slope.h), by way of a number whose last bits they
// are.
inline constexpr float kSlopeBase = 8388608.0f + kSlopeZero;
__device__ inline uint32_t encode_slope(float derivative) {
  return __float_as_uint(fmaf(derivative, kSlopeSteps, kSlopeBase));  // in the lowest byte
}
// Byte `i` of `bytes`.
__device__ inline float decode_slope(uint32_t bytes, uint32_t i) {
  constexpr float kBase = 32768.0f;  // 0x47000000; the code follows its first byte
  const float code = __uint_as_float(__byte_perm(bytes, 0x47000000u, 0x7604u + (i << 4)));
  constexpr float kStep = 1.0f / kSlopeSteps;
  return fmaf(code, kStep, -(kBase + kSlopeZero) * kStep);  // off by at most 8e-6
}

}  // namespace aifs::model::cuda
