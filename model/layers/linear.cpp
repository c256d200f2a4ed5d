// SPDX-License-Identifier: Apache-2.0
#include "model/layers/linear.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/layers/joint_linear.h"

namespace aifs::model {

Linear::Linear(const ParameterScope& scope, int64_t in, int64_t out, bool with_bias,
               LinearStart start)
    : set(&scope.set()) {
  const Init init = start == LinearStart::kZeros
                        ? Init::zeros()
                        : Init::uniform(1.0 / std::sqrt(static_cast<double>(in)));
  weight = scope.add("weight", {out, in}, init);
  if (with_bias) bias = scope.add("bias", {out}, init);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return joint_linear(x, {this})[0];
}

}  // namespace aifs::model
