// SPDX-License-Identifier: Apache-2.0
// What operations with a backward pass written by hand share: widths filled up for tensor cores,
// and gradients of parameters added where they belong.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

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
// (ParameterSet::flatten) and are trained, or in zeros that autograd is given.
class ParameterGradients {
 public:
  explicit ParameterGradients(const std::vector<at::Tensor>& parameters) : parameters_(parameters) {
    for (const at::Tensor& parameter : parameters) {
      const at::Tensor there = parameter.requires_grad() ? parameter.grad() : at::Tensor();
      places_.push_back(there.defined() ? there : at::zeros_like(parameter));
      results_.push_back(there.defined() ? at::Tensor() : places_.back());
    }
  }
  const at::Tensor& operator[](size_t i) const { return places_[i]; }
  // What autograd is given; to be called once. Autograd does not see what was added in place:
  // whoever waits for gradients of those parameters is told here.
  const std::vector<at::Tensor>& hand_over() const {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (results_[i].defined()) continue;
      if (const auto& hook = torch::autograd::impl::post_acc_grad_hooks(parameters_[i]))
        (*hook)(parameters_[i]);
    }
    return results_;
  }

 private:
  std::vector<at::Tensor> parameters_, places_, results_;
};

}  // namespace aifs::model
