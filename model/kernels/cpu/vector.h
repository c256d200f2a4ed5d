// SPDX-License-Identifier: Apache-2.0
// Vectors of 32 bytes in GCC's and Clang's own notation, and the exact GELU on them. Functions are
// inlined into those of row_block.cpp, which are compiled for several instruction sets; they take
// vectors by reference, because how these are passed depends on that set.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define AIFS_INLINE inline __attribute__((always_inline))

namespace aifs::model::cpu {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = float __attribute__((vector_size(32), may_alias, aligned(4)));
  using Bits = int32_t __attribute__((vector_size(32)));
};
template <>
struct VectorOf<double> {
  using Type = double __attribute__((vector_size(32), may_alias, aligned(8)));
  using Bits = int64_t __attribute__((vector_size(32)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
inline constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(T));

template <class T>
AIFS_INLINE Vector<T>& vec(T* p) {
  return *reinterpret_cast<Vector<T>*>(p);
}
template <class T>
AIFS_INLINE const Vector<T>& vec(const T* p) {
  return *reinterpret_cast<const Vector<T>*>(p);
}

// The first `count` values, zeros behind them.
template <class T>
AIFS_INLINE void load_some(Vector<T>& v, const T* p, int64_t count) {
  v = Vector<T>{};
  for (int64_t i = 0; i < count; ++i)
    v[i] = p[i];
}
// Zeros in place of all but the first `count` values.
template <class T>
AIFS_INLINE void keep_some(Vector<T>& v, int64_t count) {
  for (int64_t i = count; i < kLanes<T>; ++i)
    v[i] = T(0);
}
template <class T>
AIFS_INLINE void store_some(T* p, const Vector<T>& v, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    p[i] = v[i];
}

// The sum of all lanes, in a tree.
AIFS_INLINE float sum_of(const Vector<float>& v) {
  using Four = float __attribute__((vector_size(16)));
  const Four four =
      __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const Four two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
  return two[0] + two[1];
}
AIFS_INLINE double sum_of(const Vector<double>& v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

// gelu(x) = x P(x) with P the normal distribution, and its derivative P(x) + x p(x).
//
// Both come from y = exp(-x^2 / 2): P(-a) = y t Q(t) for a = |x|, t = 1 / (1 + 0.26 a), with Q the
// polynomial of least relative error (2.2e-8) for a <= 13.5, beyond which y is 0 in fp32.
AIFS_INLINE void gelu_and_slope(const Vector<float>& x, Vector<float>& gelu, Vector<float>& slope) {
  using V = Vector<float>;
  using Bits = VectorOf<float>::Bits;
  const V zero{};
  const V a = x < zero ? -x : x;
  V s = 0.5f * x * x;
  s = s > 87.0f ? zero + 87.0f : s;
  // exp(-s) = 2^n exp(r), |r| <= ln(2) / 2; the sum with 1.5 * 2^23 rounds to an integer.
  const V shifted = s * -1.44269504f + 12582912.0f;
  const V n = shifted - 12582912.0f;
  V r = n * -0.693359375f - s;
  r = n * 2.12194440e-4f + r;
  V e = r * 1.9875691500e-4f + 1.3981999507e-3f;
  e = e * r + 8.3334519073e-3f;
  e = e * r + 4.1665795894e-2f;
  e = e * r + 1.6666665459e-1f;
  e = e * r + 5.0000001201e-1f;
  e = e * (r * r) + (r + 1.0f);
  const V y =
      reinterpret_cast<V>(reinterpret_cast<Bits>(e) + (reinterpret_cast<Bits>(shifted) << 23));
  const V t = 1.0f / (0.26f * a + 1.0f);
  V q = t * 0.030783646998161f - 0.15418958473344f;
  q = q * t + 0.25431841616773f;
  q = q * t - 0.15420704126327f;
  q = q * t + 0.16322080978317f;
  q = q * t + 0.05004682432584f;
  q = q * t + 0.10328544518286f;
  q = q * t + 0.10298021069357f;
  q = q * t + 0.10376126206137f;
  const V tail = y * (t * q);
  const V p = x < zero ? tail : 1.0f - tail;
  gelu = x * p;
  slope = x * y * 0.398942280f + p;
}

AIFS_INLINE void gelu_and_slope(const Vector<double>& x, Vector<double>& gelu,
                                Vector<double>& slope) {
  for (int64_t i = 0; i < kLanes<double>; ++i) {
    const double p = 0.5 * std::erfc(-x[i] * 0.70710678118654752440);
    gelu[i] = x[i] * p;
    slope[i] = p + x[i] * std::exp(-0.5 * x[i] * x[i]) * 0.39894228040143267794;
  }
}

}  // namespace aifs::model::cpu
