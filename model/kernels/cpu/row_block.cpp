// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/cpu/row_block.h"

#include <limits>

#include "model/kernels/cpu/vector.h"

// Compiled for AVX2 with FMA and for any processor; the better one is chosen when the program
// starts (see model/kernels/simd.h, whose AVX2 has no FMA).
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define AIFS_BLOCK_KERNEL __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define AIFS_BLOCK_KERNEL
#endif

namespace aifs::model::cpu {

namespace {

// Rows of a tile: with kPanel vectors in each, its sums fill 12 of 16 registers.
constexpr int64_t kTileRows = 6;

template <class T, int64_t kRows, int64_t kVectors>
AIFS_INLINE void multiply_tile(const BlockProduct<T>& p, int64_t row, int64_t column, const T* b) {
  using V = Vector<T>;
  V sums[kRows][kVectors];
  T* out = p.out + row * p.out_row + column;
  for (int64_t v = 0; v < kVectors; ++v) {
    const V start = p.bias ? vec(p.bias + column + v * kLanes<T>) : V{};
    for (int64_t i = 0; i < kRows; ++i)
      sums[i][v] = p.adds ? vec(out + i * p.out_row + v * kLanes<T>) : start;
  }
  const T* a = p.a + row * p.a_row;
  for (int64_t k = 0; k < p.depth; ++k) {
    V from_b[kVectors];
    for (int64_t v = 0; v < kVectors; ++v)
      from_b[v] = vec(b + v * kLanes<T>);
    for (int64_t i = 0; i < kRows; ++i) {
      const T factor = a[i * p.a_row];
      for (int64_t v = 0; v < kVectors; ++v)
        sums[i][v] += factor * from_b[v];
    }
    a += p.a_depth;
    b += p.b_row;
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t v = 0; v < kVectors; ++v)
      vec(out + i * p.out_row + v * kLanes<T>) = sums[i][v];
  }
}

template <class T, int64_t kVectors>
AIFS_INLINE void multiply_panel(const BlockProduct<T>& p, int64_t column, const T* b) {
  int64_t row = 0;
  for (; row + kTileRows <= p.rows; row += kTileRows)
    multiply_tile<T, kTileRows, kVectors>(p, row, column, b);
  switch (p.rows - row) {
    case 5:
      return multiply_tile<T, 5, kVectors>(p, row, column, b);
    case 4:
      return multiply_tile<T, 4, kVectors>(p, row, column, b);
    case 3:
      return multiply_tile<T, 3, kVectors>(p, row, column, b);
    case 2:
      return multiply_tile<T, 2, kVectors>(p, row, column, b);
    case 1:
      return multiply_tile<T, 1, kVectors>(p, row, column, b);
    default:
      return;
  }
}

template <class T>
AIFS_INLINE void multiply_block(const BlockProduct<T>& p) {
  constexpr int64_t kWide = kPanel * kLanes<T>;
  const T* b = p.b;
  int64_t column = 0;
  for (; column + kWide <= p.width; column += kWide, b += p.b_panel)
    multiply_panel<T, kPanel>(p, column, b);
  if (column < p.width) multiply_panel<T, 1>(p, column, b);
}

template <class T>
AIFS_INLINE void gelu_values(const T* x, int64_t count, T* out) {
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    Vector<T> value, slope;
    gelu_and_slope(vec(x + i), value, slope);
    vec(out + i) = value;
  }
}

template <class T>
AIFS_INLINE void gelu_backward_block(const GeluBackward<T>& w) {
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t c = 0; c < w.width; c += kLanes<T>) {
      const int64_t i = row * w.width + c;
      Vector<T> value, slope;
      gelu_and_slope(vec(w.x + i), value, slope);
      const Vector<T> d = vec(w.d + i) * slope;
      vec(w.out + i) = value;
      vec(w.d + i) = d;
      vec(w.sums + c) += d;
    }
  }
}

// Calls f(column, columns) for whole vectors, then for what is left.
template <class T, class F>
AIFS_INLINE void for_columns(int64_t width, F&& f) {
  int64_t c = 0;
  for (; c + kLanes<T> <= width; c += kLanes<T>)
    f(c, kLanes<T>);
  if (c < width) f(c, width - c);
}
template <class T>
AIFS_INLINE void load(Vector<T>& v, const T* p, int64_t count) {
  if (count == kLanes<T>) {
    v = vec(p);
  } else {
    load_some(v, p, count);
  }
}
template <class T>
AIFS_INLINE void store(T* p, const Vector<T>& v, int64_t count) {
  if (count == kLanes<T>) {
    vec(p) = v;
  } else {
    store_some(p, v, count);
  }
}

template <class T>
AIFS_INLINE void norm_block(const Norm<T>& w) {
  using V = Vector<T>;
  const int64_t stride = padded<T>(w.width);
  const T share = T(1) / static_cast<T>(w.width);
  for (int64_t row = 0; row < w.rows; ++row) {
    const T* z = w.z + row * stride;
    V sum{};
    for (int64_t c = 0; c < w.width; c += kLanes<T>)
      sum += vec(z + c);
    const T mean = sum_of(sum) * share;
    V squares{};
    for_columns<T>(
        w.width, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          V apart;
          load(apart, z + c, n);
          apart -= mean;
          if (n < kLanes<T>) keep_some<T>(apart, n);
          squares += apart * apart;
        });
    const T variance = sum_of(squares) * share;
    // Values too large to have a variance have no norm, which must not pass for numbers.
    const T inverse = variance <= std::numeric_limits<T>::max()
                          ? T(1) / std::sqrt(variance + w.eps)
                          : std::numeric_limits<T>::quiet_NaN();
    w.statistics[2 * row] = mean;
    w.statistics[2 * row + 1] = inverse;
    if (!w.y) continue;
    for_columns<T>(
        w.width, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          V y = (vec(z + c) - mean) * inverse * vec(w.weight + c) + vec(w.bias + c);
          if (w.residual) {
            V more;
            load(more, w.residual + row * w.width + c, n);
            y += more;
          }
          store(w.y + row * w.width + c, y, n);
        });
  }
}

template <class T>
AIFS_INLINE void norm_backward_block(const NormBackward<T>& w) {
  using V = Vector<T>;
  const int64_t stride = padded<T>(w.width);
  const T share = T(1) / static_cast<T>(w.width);
  for (int64_t row = 0; row < w.rows; ++row) {
    const T *g = w.g + row * stride, *z = w.z + row * stride;
    const T mean = w.statistics[2 * row], inverse = w.statistics[2 * row + 1];
    V sum{}, sum_x{};
    for (int64_t c = 0; c < w.width; c += kLanes<T>) {
      const V x = (vec(z + c) - mean) * inverse, gradient = vec(g + c);
      const V h = gradient * vec(w.weight + c);
      sum += h;
      sum_x += h * x;
      vec(w.d_weight + c) += gradient * x;
      vec(w.d_bias + c) += gradient;
    }
    const T h_mean = sum_of(sum) * share, hx_mean = sum_of(sum_x) * share;
    for_columns<T>(
        w.width, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          const V x = (vec(z + c) - mean) * inverse;
          V d = (vec(g + c) * vec(w.weight + c) - h_mean - x * hx_mean) * inverse;
          if (n < kLanes<T>) keep_some<T>(d, n);
          vec(w.d_z + row * stride + c) = d;
          vec(w.z_sums + c) += d;
        });
  }
}

template <class T>
AIFS_INLINE void gather_block(const Gather<T>& w) {
  using V = Vector<T>;
  for (int64_t row = 0; row < w.rows; ++row) {
    const T* a = w.a ? w.a + (w.index_a ? w.index_a[row] : row) * w.width : nullptr;
    const T* b = w.b ? w.b + w.index_b[row] * w.width : nullptr;
    T* out = w.out + row * w.out_row;
    for_columns<T>(
        w.width, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          V sum{}, one;
          if (w.start) load(sum, w.start + c, n);
          if (a) {
            load(one, a + c, n);
            sum += one;
          }
          if (b) {
            load(one, b + c, n);
            sum += one;
          }
          store(out + c, sum, w.out_row - c < kLanes<T> ? w.out_row - c : kLanes<T>);
        });
  }
}

template <class T>
AIFS_INLINE void scatter_block(const Scatter<T>& w) {
  for (int64_t row = 0; row < w.rows; ++row) {
    const T* from = w.from + row * w.from_row;
    T* out = w.out + w.index[row] * w.width;
    for_columns<T>(
        w.width, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
          Vector<T> sum, one;
          load(sum, out + c, n);
          load(one, from + c, n);
          sum += one;
          store(out + c, sum, n);
        });
  }
}

template <class T>
AIFS_INLINE void sum_columns(const T* rows, int64_t count, int64_t width, T* sums) {
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t c = 0; c < width; c += kLanes<T>)
      vec(sums + c) += vec(rows + row * width + c);
  }
}

}  // namespace

#define AIFS_DEFINE_BLOCK_KERNELS(T)                                                             \
  AIFS_BLOCK_KERNEL void multiply(const BlockProduct<T>& product) {                              \
    multiply_block(product);                                                                     \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void gelu(const T* x, int64_t count, T* out) {                               \
    gelu_values(x, count, out);                                                                  \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void gelu_backward(const GeluBackward<T>& work) {                            \
    gelu_backward_block(work);                                                                   \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void norm(const Norm<T>& work) {                                             \
    norm_block(work);                                                                            \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void norm_backward(const NormBackward<T>& work) {                            \
    norm_backward_block(work);                                                                   \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void gather(const Gather<T>& work) {                                         \
    gather_block(work);                                                                          \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void scatter(const Scatter<T>& work) {                                       \
    scatter_block(work);                                                                         \
  }                                                                                              \
  AIFS_BLOCK_KERNEL void add_column_sums(const T* rows, int64_t count, int64_t width, T* sums) { \
    sum_columns(rows, count, width, sums);                                                       \
  }

AIFS_DEFINE_BLOCK_KERNELS(float)
AIFS_DEFINE_BLOCK_KERNELS(double)
#undef AIFS_DEFINE_BLOCK_KERNELS

}  // namespace aifs::model::cpu
