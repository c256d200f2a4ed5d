// SPDX-License-Identifier: Apache-2.0
// What operations with a backward pass written by hand share: widths filled up for tensor cores,
// and gradients of parameters added where they belong.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "model/kernels/row_ops.h"

namespace aifs::model {

// Tensor cores read 16 bytes at a time: widths of narrow types are filled up with zeros to eights.
inline int64_t padding(const at::Tensor& x, int64_t width) {
  constexpr int64_t kAlignment = 8;
  const bool narrow = x.is_cuda() && x.element_size() < 4;
  return narrow ? (kAlignment - width % kAlignment) % kAlignment : 0;
}
inline at::Tensor pad_columns(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, more});
}
inline at::Tensor pad_rows(const at::Tensor& x, int64_t more) {
  return more == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, more});
}

// add_weight_gradient() where columns of x beyond those of `d_weight` are filling.
inline void add_padded_weight_gradient(const at::Tensor& d_weight, const at::Tensor& d,
                                       const at::Tensor& x) {
  const int64_t width = d_weight.size(1);
  if (x.size(1) == width) return add_weight_gradient(d_weight, d, x);
  const at::Tensor padded = at::zeros({d_weight.size(0), x.size(1)}, d_weight.options());
  add_weight_gradient(padded, d, x);
  d_weight.add_(padded.narrow(1, 0, width));
}

// Where the gradients of parameters are added up: in place where they have one already
// (ParameterSet::flatten), or in zeros that autograd is given.
class ParameterGradients {
 public:
  explicit ParameterGradients(const std::vector<at::Tensor>& parameters) {
    for (const at::Tensor& parameter : parameters) {
      const at::Tensor& there = parameter.grad();
      places_.push_back(there.defined() ? there : at::zeros_like(parameter));
      results_.push_back(there.defined() ? at::Tensor() : places_.back());
    }
  }
  const at::Tensor& operator[](size_t i) const { return places_[i]; }
  // For autograd.
  const std::vector<at::Tensor>& results() const { return results_; }

 private:
  std::vector<at::Tensor> places_, results_;
};

}  // namespace aifs::model
