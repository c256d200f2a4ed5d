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

constexpr auto enum_table(Activation) {
  using enum Activation;
  return std::to_array<EnumName<Activation>>({{kGelu, "gelu"},
                                              {kSilu, "silu"},
                                              {kRelu, "relu"},
                                              {kLeakyRelu, "leaky_relu"},
                                              {kElu, "elu"},
                                              {kSelu, "selu"},
                                              {kSoftplus, "softplus"},
                                              {kTanh, "tanh"},
                                              {kSigmoid, "sigmoid"},
                                              {kMish, "mish"},
                                              {kHardswish, "hardswish"},
                                              {kIdentity, "identity"}});
}

}  // namespace aifs::model
