// SPDX-License-Identifier: Apache-2.0
// Limits that depend on the case: on the step of a run, on the size of other gradients, on how far
// a norm stretches the rounding of what it divides. The rest stand beside the comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aifs::conformance {

// Relative limit of a gradient in fp64. On the scale below it reaches a floor of 1e-13 of the
// largest element of the model: gradients of tensors that have none but rounding.
constexpr double kGradientF64 = 1e-10;
double gradient_scale_f64(double largest_of_tensor, double largest_of_model);

// Relative limit of the loss of a step (from 0) of a training run in bfloat16, against fp32.
double bf16_loss_limit(int64_t step);

// How far a norm stretches differences: the ratio of the ranges of normalised and raw values. All
// norms but log1p are linear. 1 where the raw values are all equal.
template <class Real>
double norm_slope(const std::vector<Real>& raw, const std::vector<Real>& normalised);

// Absolute limits of an edge attribute with its norm in whole graphs. `attribute`: class name;
// `slope`: see above. They are those of the reference's graphs, and grow with the slope from where
// the rounding of raw values reaches them.
struct AttributeLimits {
  double float32, float64;
};
AttributeLimits attribute_limits(const std::string& attribute, double slope);

// Absolute limit in fp32 of an attribute without a norm. `order`: of directional harmonics.
double raw_attribute_limit(const std::string& attribute, int64_t order = 1);

// Absolute limit in fp32 of normalised values: ten times the reference's own spread between fp32
// and fp64, and a few units in the last place of the largest value where that is 0 by luck.
double spread_limit(double spread, double largest);

}  // namespace aifs::conformance
