// SPDX-License-Identifier: Apache-2.0
#include "model/layers/joint_linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/layers/mixed_products.h"

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The bias that may follow a weight in a list of parameters.
const at::Tensor* bias_after(const variable_list& list, size_t weight) {
  const bool there = weight + 1 < list.size() && list[weight + 1].dim() == 1;
  return there ? &list[weight + 1] : nullptr;
}

// Inputs: x, then weight and perhaps bias of each map.
struct MixedLinear : torch::autograd::Function<MixedLinear> {
  static variable_list forward(AutogradContext* ctx, at::TensorList all,
                               const std::vector<at::Tensor>& working) {
    const variable_list inputs = all.vec();
    const at::Tensor& x = inputs[0];
    const int64_t more_in = padding(x, x.size(1));
    const at::Tensor rows = pad_columns(x, more_in);
    variable_list result;
    size_t place = 1;
    for (size_t i = 0; i < working.size(); ++i) {
      const int64_t out = working[i].size(0), more = padding(x, out);
      const at::Tensor w = pad_columns(pad_rows(working[i], more), more_in);
      const at::Tensor* bias = bias_after(inputs, place);
      place += bias ? 2 : 1;
      const at::Tensor y =
          bias ? at::addmm(pad_columns(bias->to(x.scalar_type()), more), rows, w.t())
               : at::mm(rows, w.t());
      result.push_back(y.narrow(1, 0, out));
    }
    ctx->save_for_backward(inputs);
    ctx->saved_data["working"] = working;
    return result;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<at::Tensor> working = ctx->saved_data["working"].toTensorVector();
    const at::Tensor& x = saved[0];
    const int64_t in = x.size(1), more_in = padding(x, in);
    const at::Tensor rows = pad_columns(x, more_in);
    const ParameterGradients d_parameters({saved.begin() + 1, saved.end()});
    at::Tensor d_x;
    size_t place = 1;
    for (size_t i = 0; i < working.size(); ++i) {
      const size_t at = place - 1;  // among the parameters
      const at::Tensor* bias = bias_after(saved, place);
      place += bias ? 2 : 1;
      const at::Tensor& g = gradients[i];
      if (!g.defined()) continue;
      const int64_t out = g.size(1), more = padding(x, out);
      const at::Tensor d = pad_columns(g, more).contiguous();
      add_weight_gradient(d_parameters[at], d.narrow(1, 0, out), rows);
      if (bias) add_column_sums(d_parameters[at + 1], d.narrow(1, 0, out));
      if (!x.requires_grad()) continue;
      const at::Tensor w = pad_columns(pad_rows(working[i], more), more_in);
      d_x = d_x.defined() ? d_x.addmm_(d, w) : at::mm(d, w);
    }
    variable_list result{d_x.defined() ? d_x.narrow(1, 0, in) : d_x};
    const variable_list& handed = d_parameters.hand_over();
    result.insert(result.end(), handed.begin(), handed.end());
    result.emplace_back();  // of working
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> joint_linear(const at::Tensor& x,
                                     const std::vector<const LinearMap*>& maps) {
  const at::ScalarType type = x.scalar_type();
  const bool mixed = x.is_cuda() && x.element_size() < maps[0]->weight.element_size();
  std::vector<at::Tensor> results;
  if (!mixed) {
    for (const LinearMap* map : maps) {
      const std::optional<at::Tensor> bias =
          map->bias.defined() ? std::optional(map->bias.to(type)) : std::nullopt;
      results.push_back(at::linear(x, map->weight.to(type), bias));
    }
    return results;
  }
  std::vector<at::Tensor> all{x.reshape({-1, x.size(-1)})}, working;
  for (const LinearMap* map : maps) {
    all.push_back(map->weight);
    if (map->bias.defined()) all.push_back(map->bias);
    working.push_back(map->working_weight(type));
  }
  results = MixedLinear::apply(at::TensorList(all), working);
  for (at::Tensor& y : results) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = y.size(1);
    y = y.reshape(sizes);
  }
  return results;
}

}  // namespace aifs::model
