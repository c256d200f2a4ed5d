// SPDX-License-Identifier: Apache-2.0
#include "model/layers/activation.h"

#include <ATen/ATen.h>

namespace aifs::model {

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, 0.01);
    case Activation::kElu:
      return at::elu(x);
    case Activation::kSelu:
      return at::selu(x);
    case Activation::kSoftplus:
      return at::softplus(x);
    case Activation::kTanh:
      return at::tanh(x);
    case Activation::kSigmoid:
      return at::sigmoid(x);
    case Activation::kMish:
      return at::mish(x);
    case Activation::kHardswish:
      return at::hardswish(x);
    case Activation::kIdentity:
      return x;
  }
  return x;
}

}  // namespace aifs::model
