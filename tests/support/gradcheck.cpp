// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gradcheck.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "tests/support/tensors.h"

namespace aifs::test {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kRatio = 100.0;  // of value or third derivative to gradient, at most

at::Tensor weighted_sum(const TensorFunction& function, const std::vector<at::Tensor>& inputs) {
  const at::Tensor value = function(inputs);
  return (value * random_tensor(value.sizes(), /*seed=*/99)).sum();
}

double plain_value(const TensorFunction& function, const std::vector<at::Tensor>& inputs) {
  return weighted_sum(function, inputs).detach().item<double>();
}

}  // namespace

double gradient_error(const TensorFunction& function, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) {
    AIFS_CHECK(input.scalar_type() == at::kDouble, "gradients are checked in fp64");
    leaves.push_back(input.detach().clone().set_requires_grad(true));
  }
  weighted_sum(function, leaves).backward();

  std::vector<at::Tensor> moved;
  for (const at::Tensor& input : inputs)
    moved.push_back(input.detach().clone().contiguous());
  double largest = 0.0, worst = 0.0;
  for (size_t i = 0; i < moved.size(); ++i) {
    AIFS_CHECK(leaves[i].grad().defined(), "input ", i, " gets no gradient");
    const at::Tensor gradient = leaves[i].grad().contiguous();
    const double* analytic = gradient.const_data_ptr<double>();
    double* x = moved[i].data_ptr<double>();
    for (int64_t k = 0; k < moved[i].numel(); ++k) {
      const double middle = x[k], h = std::cbrt(kEpsilon) * std::max(1.0, std::abs(middle));
      x[k] = middle + h;
      const double above = plain_value(function, moved);
      x[k] = middle - h;
      const double below = plain_value(function, moved);
      x[k] = middle;
      worst = std::max(worst, std::abs((above - below) / (2.0 * h) - analytic[k]));
      largest = std::max(largest, std::abs(analytic[k]));
    }
  }
  AIFS_CHECK(largest > 0.0, "all gradients are zero");
  return worst / largest;
}

double gradient_tolerance() {
  return kRatio * std::pow(kEpsilon, 2.0 / 3.0);
}

}  // namespace aifs::test
