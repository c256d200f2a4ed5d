// SPDX-License-Identifier: Apache-2.0
// A linear map with weight (out, in) and, unless it is left out, bias (out), started as
// torch.nn.Linear. It works in the type of its input.
#pragma once

#include "model/parameters.h"

namespace aifs::model {

enum class LinearStart { kUniform, kZeros };

struct Linear {
  at::Tensor weight, bias;            // bias may be undefined
  const ParameterSet* set = nullptr;  // that they belong to
  Linear() = default;
  Linear(const ParameterScope& scope, int64_t in, int64_t out, bool with_bias = true,
         LinearStart start = LinearStart::kUniform);
  at::Tensor forward(const at::Tensor& x) const;
  // The weight in another type, without a gradient.
  at::Tensor working_weight(at::ScalarType type) const { return set->working(weight, type); }
};

}  // namespace aifs::model
