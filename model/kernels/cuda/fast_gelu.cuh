// SPDX-License-Identifier: Apache-2.0
// GELUs of two values at once, Phi as in gelu.cuh by way of the tanh instruction in half precision,
// which is off by as much, 5e-4, as that in single precision. Derivatives are off by 2e-3, less
// than their 8 bits are.
#pragma once

#include <cuda_fp16.h>

#include "model/kernels/cuda/gelu.cuh"

namespace aifs::model::cuda {

struct GeluPair {
  float2 value;
  __half2 tilt;  // derivatives are (1 + tilt) / 2

  __device__ GeluPair(float x, float y) {
    const auto both = [](float z) { return __float2half2_rn(z); };
    // Beyond 6 the polynomial would turn round, and large values are none of half precision.
    const __half2 at = __hmax2(__hmin2(__floats2half2_rn(x, y), both(6.0f)), both(-6.0f));
    const __half2 s = __hmul2(at, at);
    const __half2 u = __hmul2(at, gelu_polynomial(s));
    __half2 t;
    asm("tanh.approx.f16x2 %0, %1;"
        : "=r"(reinterpret_cast<uint32_t&>(t))
        : "r"(reinterpret_cast<const uint32_t&>(u)));
    const float2 wide = __half22float2(t);
    value = {0.5f * x + 0.5f * x * wide.x, 0.5f * y + 0.5f * y * wide.y};
    const __half2 du = __hmul2(at, gelu_polynomial_slope(s));
    tilt = __hfma2(du, __hfma2(__hneg2(t), t, both(1.0f)), t);
  }
  __device__ float2 derivative() const {
    const float2 wide = __half22float2(tilt);
    return {0.5f + 0.5f * wide.x, 0.5f + 0.5f * wide.y};
  }
  // encode_slope() of both, in the lowest bytes of two halves.
  __device__ uint32_t slopes() const {
    constexpr float kHalf = 0.5f * kSlopeSteps;
    const __half2 codes =
        __hfma2(tilt, __float2half2_rn(kHalf), __float2half2_rn(1024.0f + kSlopeZero + kHalf));
    return reinterpret_cast<const uint32_t&>(codes);
  }
};

}  // namespace aifs::model::cuda
