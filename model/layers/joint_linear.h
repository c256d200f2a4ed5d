// SPDX-License-Identifier: Apache-2.0
// Several linear maps of the same rows.
#pragma once

#include <vector>

#include "model/layers/linear.h"

namespace aifs::model {

// x (rows, in) -> (rows, out) of each map. On a GPU with rows narrower than the weights it is one
// operation: the working copies of the weights multiply, the gradients of x are added up by the
// products themselves, those of parameters in their own type and in place.
std::vector<at::Tensor> joint_linear(const at::Tensor& x, const std::vector<const Linear*>& maps);

}  // namespace aifs::model
