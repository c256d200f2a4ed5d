// SPDX-License-Identifier: Apache-2.0
#include "model/base/parameter_unit.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace aifs::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The identity; gradients pass it before they reach the layer.
struct FetchForBackward : torch::autograd::Function<FetchForBackward> {
  static variable_list forward(AutogradContext* ctx, at::TensorList outputs, UnitKeeper* keeper,
                               int64_t unit) {
    ctx->saved_data["keeper"] = reinterpret_cast<int64_t>(keeper);
    ctx->saved_data["unit"] = unit;
    return outputs.vec();
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    reinterpret_cast<UnitKeeper*>(ctx->saved_data["keeper"].toInt())
        ->fetch(ctx->saved_data["unit"].toInt());
    gradients.insert(gradients.end(), 2, at::Tensor());  // of keeper and unit
    return gradients;
  }
};

}  // namespace

std::vector<at::Tensor> in_unit(const ParameterSet& set, int64_t unit, const TensorsFunction& layer,
                                const std::vector<at::Tensor>& inputs) {
  UnitKeeper* keeper = set.keeper();
  if (!keeper) return layer(inputs);
  keeper->fetch(unit);
  std::vector<at::Tensor> outputs = layer(inputs), defined;
  keeper->release(unit);
  for (const at::Tensor& output : outputs) {
    if (output.defined()) defined.push_back(output);
  }
  defined = FetchForBackward::apply(at::TensorList(defined), keeper, unit);
  auto next = defined.begin();
  for (at::Tensor& output : outputs) {
    if (output.defined()) output = *next++;
  }
  return outputs;
}

}  // namespace aifs::model
