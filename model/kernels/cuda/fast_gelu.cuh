// SPDX-License-Identifier: Apache-2.0
// GELUs of pairs of values in half precision, Phi as in gelu.cuh by way of the tanh instruction,
// which is off by 5e-4 as it is in single precision. With an exact tanh GELUs would be off by 5e-4
// and derivatives by 2e-3; where it is least exact, near 3.4, derivatives are off by up to 3e-3. A
// GELU of NaN is NaN, its derivative is not.
#pragma once

#include <cuda_fp16.h>

#include "model/kernels/cuda/gelu.cuh"

namespace aifs::model::cuda {

// Takes halves of values, x / 2: GELU(x) = x / 2 (1 + t) with t = tanh(u(x)). Step by step for all
// pairs, which hides how long each step takes.
template <int kPairs>
struct GeluPairs {
  float2 value[kPairs];
  __half2 tilt[kPairs];  // derivatives are (1 + tilt) / 2 with tilt = t + x u'(x) (1 - t^2)

  __device__ explicit GeluPairs(const float (&halves)[2 * kPairs]) {
    const auto both = [](float z) { return __float2half2_rn(z); };
    // Polynomials of (x / 2)^2.
    constexpr float a = 2.0f * kGeluA, b = 8.0f * kGeluB, c = 32.0f * kGeluC;
    __half2 half[kPairs], square[kPairs], u[kPairs], t[kPairs];
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      half[k] = within(__floats2half2_rn(halves[2 * k], halves[2 * k + 1]), both(3.0f));
      square[k] = __hmul2(half[k], half[k]);
    }
#pragma unroll
    for (int k = 0; k < kPairs; ++k)
      u[k] = __hfma2(square[k], __hfma2(square[k], both(c), both(b)), both(a));
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      u[k] = __hmul2(half[k], u[k]);
      asm("tanh.approx.f16x2 %0, %1;"
          : "=r"(reinterpret_cast<uint32_t&>(t[k]))
          : "r"(reinterpret_cast<const uint32_t&>(u[k])));
    }
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      const float2 wide = __half22float2(t[k]);
      value[k] = {fmaf(halves[2 * k], wide.x, halves[2 * k]),
                  fmaf(halves[2 * k + 1], wide.y, halves[2 * k + 1])};
    }
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      const __half2 slope =
          __hfma2(square[k], __hfma2(square[k], both(5.0f * c), both(3.0f * b)), both(a));
      tilt[k] = __hfma2(__hmul2(half[k], slope), __hfma2(__hneg2(t[k]), t[k], both(1.0f)), t[k]);
    }
  }
  __device__ float2 derivative(int k) const {
    const float2 wide = __half22float2(tilt[k]);
    return {0.5f + 0.5f * wide.x, 0.5f + 0.5f * wide.y};
  }
  // encode_slope() of both, in the lowest bytes of two halves.
  __device__ uint32_t slopes(int k) const {
    constexpr float kHalf = 0.5f * kSlopeSteps;
    const __half2 codes =
        __hfma2(tilt[k], __float2half2_rn(kHalf), __float2half2_rn(1024.0f + kSlopeZero + kHalf));
    return reinterpret_cast<const uint32_t&>(codes);
  }

 private:
  // Beyond 3 the polynomial would turn round, and large values are none of half precision.
  __device__ static __half2 within(__half2 x, __half2 bound) {
    __half2 out;
    asm("min.xorsign.abs.f16x2 %0, %1, %2;"
        : "=r"(reinterpret_cast<uint32_t&>(out))
        : "r"(reinterpret_cast<const uint32_t&>(x)), "r"(reinterpret_cast<const uint32_t&>(bound)));
    return out;
  }
};

}  // namespace aifs::model::cuda
