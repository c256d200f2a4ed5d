// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_compare.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "conformance/tensors.h"

namespace aifs::conformance {

namespace {

// In fp32 a tensor whose gradients are tiny is compared on the scale of the whole model.
constexpr double kTinyGradient = 1e-4, kTinyLimit = 1e-6;
constexpr double kSmallest = 1e-300;  // of what is zero everywhere

}  // namespace

double widened(double limit, size_t step) {
  return std::ldexp(limit, static_cast<int>(step));
}

double Expected::own_error(const std::string& name) const {
  if (!twin_ || !twin_->contains(name)) return 0.0;
  return max_difference(read_tensor(tensors_, name), read_tensor(*twin_, name));
}

bool is_noise(const model::ParameterSet& parameters, const std::string& name) {
  const std::string leaf = "lin_key.bias";
  if (!name.ends_with(leaf)) return false;
  const std::string block = name.substr(0, name.size() - leaf.size());
  return !parameters.contains(block + "k_norm.weight");
}

void compare_gradients(const model::ParameterSet& parameters, const Expected& expected,
                       double limit, bool of_model, Comparison& comparison) {
  double largest = 0.0;
  for (const auto& [name, entry] : expected.tensors().entries()) {
    if (name.starts_with("grad/"))
      largest = std::max(largest, max_abs(read_tensor(expected.tensors(), name)));
  }
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string name = "grad/" + parameter.name;
    if (!expected.tensors().contains(name) || is_noise(parameters, parameter.name)) continue;
    const at::Tensor reference = read_tensor(expected.tensors(), name);
    const double error = max_difference(parameters.gradient(parameter).cpu(), reference);
    const double of_tensor = max_abs(reference);
    const bool single = parameters.dtype() == at::kFloat;
    const bool tiny = single && (of_model || of_tensor < kTinyGradient * largest);
    const double scale = !single ? gradient_scale_f64(of_tensor, largest)
                         : tiny  ? largest
                                 : std::max(of_tensor, kSmallest);
    comparison.add(name, error / scale, limit * (tiny ? kTinyLimit / kModelFp32.gradient : 1.0),
                   expected.own_error(name) / scale);
  }
}

void compare_parameters(const model::ParameterSet& parameters, const Expected& expected,
                        const std::string& prefix, double limit, bool relative,
                        Comparison& comparison) {
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string name = prefix + parameter.name;
    if (!expected.tensors().contains(name) || is_noise(parameters, parameter.name)) continue;
    const at::Tensor reference = read_tensor(expected.tensors(), name);
    const double scale = relative ? std::max(max_abs(reference), kSmallest) : 1.0;
    comparison.add(name, max_difference(parameter.tensor.cpu(), reference) / scale, limit,
                   expected.own_error(name) / scale);
  }
}

void compare_output(const std::string& name, const at::Tensor& ours, const Expected& expected,
                    double limit, Comparison& comparison) {
  const at::Tensor reference = read_tensor(expected.tensors(), name);
  const double scale = reference.scalar_type() == at::kDouble ? max_abs(reference) : 1.0;
  comparison.add(name, max_difference(ours.cpu(), reference) / scale, limit,
                 expected.own_error(name));
}

void compare_loss(const std::string& name, double loss, const Expected& expected, double limit,
                  Comparison& comparison) {
  const double reference = expected.tensors().doubles(name).at(0);
  comparison.add(name, relative_difference(loss, reference), limit,
                 expected.own_error(name) / std::abs(reference));
}

}  // namespace aifs::conformance
