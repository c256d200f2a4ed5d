// SPDX-License-Identifier: Apache-2.0
// Element-wise activations by name, with torch's default parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/enum_names.h"

namespace aifs::model {

enum class Activation {
  kGelu,  // the exact (erf) form
  kSilu,
  kRelu,
  kLeakyRelu,
  kElu,
  kSelu,
  kSoftplus,
  kTanh,
  kSigmoid,
  kMish,
  kHardswish,
  kIdentity
};

at::Tensor activate(const at::Tensor& x, Activation activation);

}  // namespace aifs::model

template <>
struct aifs::EnumNames<aifs::model::Activation> {
  using A = aifs::model::Activation;
  static constexpr std::array<std::pair<A, const char*>, 12> table{{{A::kGelu, "gelu"},
                                                                    {A::kSilu, "silu"},
                                                                    {A::kRelu, "relu"},
                                                                    {A::kLeakyRelu, "leaky_relu"},
                                                                    {A::kElu, "elu"},
                                                                    {A::kSelu, "selu"},
                                                                    {A::kSoftplus, "softplus"},
                                                                    {A::kTanh, "tanh"},
                                                                    {A::kSigmoid, "sigmoid"},
                                                                    {A::kMish, "mish"},
                                                                    {A::kHardswish, "hardswish"},
                                                                    {A::kIdentity, "identity"}}};
};
