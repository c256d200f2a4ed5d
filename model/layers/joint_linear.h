// SPDX-License-Identifier: Apache-2.0
// Several linear maps of the same rows.
#pragma once

#include <vector>

#include "model/base/parameters.h"

namespace aifs::model {

// The tensors of a linear map, weight (out, in) and bias (out), which may be undefined.
struct LinearMap {
  at::Tensor weight, bias;
  const ParameterSet* set = nullptr;  // that they belong to
  // The weight in another type, without a gradient.
  at::Tensor working_weight(at::ScalarType type) const { return set->working(weight, type); }
};

// x (rows, in) -> (rows, out) of each map. On a GPU with rows narrower than the weights it is one
// operation: the working copies of the weights multiply, the gradients of x are added up by the
// products themselves, those of parameters in their own type and in place.
std::vector<at::Tensor> joint_linear(const at::Tensor& x,
                                     const std::vector<const LinearMap*>& maps);

}  // namespace aifs::model
