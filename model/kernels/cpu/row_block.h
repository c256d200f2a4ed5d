// SPDX-License-Identifier: Apache-2.0
// The work of a MLP on a block of rows that fits the caches, in fp32 and fp64: products of narrow
// matrices, GELU, LayerNorm, and their backward passes. Vectorised for what the processor has.
// Everything runs in the calling thread, and in a fixed order.
//
// Rows of a block are `padded` wide: columns rounded up to whole vectors, with zeros at the end.
#pragma once

#include <cstdint>

namespace aifs::model::cpu {

// Returns how wide rows of `width` columns are in a block.
template <class T>
constexpr int64_t padded(int64_t width) {
  constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(T));
  return (width + kLanes - 1) / kLanes * kLanes;
}

// out (rows, width) = start + a b with a (rows, depth), b (depth, width); width is padded. Starts
// from `bias`, from what there is (`adds`), or from zeros. Values of b are in panels of
// kPanel vectors: (depth) rows of one panel are `b_row` apart, panels `b_panel`.
template <class T>
struct BlockProduct {
  int64_t rows, depth, width;
  const T* a;
  int64_t a_row, a_depth;  // distances between rows, and along them
  const T* b;
  int64_t b_row, b_panel;
  T* out;
  int64_t out_row;
  const T* bias = nullptr;
  bool adds = false;
};
inline constexpr int64_t kPanel = 2;
void multiply(const BlockProduct<float>& product);
void multiply(const BlockProduct<double>& product);

// out = gelu(x), for `count` values, a whole number of vectors.
void gelu(const float* x, int64_t count, float* out);
void gelu(const double* x, int64_t count, double* out);

// d times the derivative of gelu(x), in place, and gelu(x) to `out`; rows (rows, width), width
// padded. Adds the sums of the columns of d to `sums`.
template <class T>
struct GeluBackward {
  int64_t rows, width;
  const T* x;
  T *d, *out, *sums;
};
void gelu_backward(const GeluBackward<float>& work);
void gelu_backward(const GeluBackward<double>& work);

// y = norm(z) * weight + bias + residual (null: none). Rows of z, weight and bias are padded, those
// of y and residual are `width` wide. Statistics: mean and 1 / deviation of each row.
template <class T>
struct Norm {
  int64_t rows, width;
  const T *z, *weight, *bias, *residual;
  T eps;
  T *y, *statistics;
};
void norm(const Norm<float>& work);
void norm(const Norm<double>& work);

// The gradient of z from g, that of y (padded; d_z may be g). Adds to the gradients of weight and
// bias, and the sum of d_z to `z_sums`.
template <class T>
struct NormBackward {
  int64_t rows, width;
  const T *g, *z, *weight, *statistics;
  T *d_z, *d_weight, *d_bias, *z_sums;
};
void norm_backward(const NormBackward<float>& work);
void norm_backward(const NormBackward<double>& work);

// out[i] = start + a[index_a[i]] + b[index_b[i]], rows of `width` (a null operand: none). Rows of
// `out` are `out_row` apart and zero behind `width` up to it; `start` (null: zeros) is one row.
template <class T>
struct Gather {
  int64_t rows, width;
  const T* a;
  const int32_t* index_a = nullptr;  // null: i
  const T* b = nullptr;
  const int32_t* index_b = nullptr;
  const T* start = nullptr;
  T* out;
  int64_t out_row;
};
void gather(const Gather<float>& work);
void gather(const Gather<double>& work);

// out[index[i] * width ...] += rows[i], rows of `rows` are `row` apart.
template <class T>
struct Scatter {
  int64_t rows, width;
  const T* from;
  int64_t from_row;
  const int32_t* index;
  T* out;
};
void scatter(const Scatter<float>& work);
void scatter(const Scatter<double>& work);

// sums[c] += the sum of column c; width padded.
void add_column_sums(const float* rows, int64_t count, int64_t width, float* sums);
void add_column_sums(const double* rows, int64_t count, int64_t width, double* sums);

}  // namespace aifs::model::cpu
