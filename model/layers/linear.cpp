// SPDX-License-Identifier: Apache-2.0
#include "model/layers/linear.h"

#include <ATen/ATen.h>

#include <cmath>

namespace aifs::model {

Linear::Linear(const ParameterScope& scope, int64_t in, int64_t out, bool with_bias,
               LinearStart start, const LinearSlices& slices)
    : ranks_(slices.in ? scope.ranks() : TensorRanks()), slices_(slices) {
  set = &scope.set();
  const Init init = start == LinearStart::kZeros
                        ? Init::zeros()
                        : Init::uniform(1.0 / std::sqrt(static_cast<double>(in)));
  const auto slice = [&](int64_t dimension, int64_t n) {
    return scope.ranks().slice(dimension, n, slices.unit);
  };
  const Slice out_slice = slices.out ? slice(0, out) : Slice();
  weight = scope.add("weight", {out, in}, init, slices.in ? slice(1, in) : out_slice);
  if (with_bias) bias = scope.add("bias", {out}, init, out_slice);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  if (!ranks_.any()) return joint_linear(x, {this})[0];
  const at::ScalarType type = x.scalar_type();
  const at::Tensor sum =
      slices_.out ? ranks_.scattered(at::matmul(weight.to(type), x.t()), slices_.unit).t()
                  : ranks_.total(at::linear(x, weight.to(type)));
  return bias.defined() ? sum + bias.to(type) : sum;
}

}  // namespace aifs::model
