// SPDX-License-Identifier: Apache-2.0
// What operations with a backward pass written by hand share: gradients of parameters added where
// they belong.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

#include "model/base/filling.h"
#include "model/kernels/row_ops.h"

namespace aifs::model {

// Says where the gradients of parameters are added up: in place where they have one already
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
  // Returns what autograd is given; to be called once. Autograd does not see what was added in
  // place: whoever waits for gradients of those parameters is told here.
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
