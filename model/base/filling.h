// SPDX-License-Identifier: Apache-2.0
// Rows filled up for tensor cores, which read 16 bytes at a time: behind the columns of narrow
// types on a GPU come as many zeros as make their number a multiple of eight. Whoever makes rows
// can fill them up at once, which saves a copy later; the gradient of filling is zero.
#pragma once

#include <ATen/ATen.h>

namespace aifs::model {

// How many columns are missing behind `width` of that type there.
inline int64_t padding(const at::TensorOptions& options, int64_t width) {
  constexpr int64_t kAlignment = 8;
  const bool narrow = options.device().is_cuda() && options.dtype().itemsize() < 4;
  return narrow ? (kAlignment - width % kAlignment) % kAlignment : 0;
}
inline int64_t padding(const at::Tensor& x, int64_t width) {
  return padding(x.options(), width);
}

// x with its columns filled up, or its rows with zeros below.
inline at::Tensor pad_columns(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, more});
}
inline at::Tensor pad_rows(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, more});
}

// The columns before the filling; differentiable.
inline at::Tensor without_filling(const at::Tensor& rows, int64_t width) {
  return rows.size(1) == width ? rows : rows.narrow(1, 0, width);
}

}  // namespace aifs::model
