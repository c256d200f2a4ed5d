// SPDX-License-Identifier: Apache-2.0
// How outputs, losses, gradients and weights of a model are compared with the reference's, in the
// limits of ../golden/README.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "conformance/limits.h"
#include "conformance/model_setup.h"
#include "conformance/report.h"

namespace aifs::conformance {

// Limits for one precision.
struct ModelLimits {
  double output, loss, gradient, parameters, step_losses;
};
constexpr ModelLimits kModelFp32{5e-6, 1e-6, 1e-5, 5e-5, 5e-6};
constexpr ModelLimits kModelFp64{1e-12, 1e-12, kGradientF64, 1e-10, 1e-12};

// Every further step of a rollout may be twice as far off.
double widened(double limit, size_t step);

// Results of the reference, in fp32 with those in fp64 beside them: it may be further from these
// than the limits allow for, as larger models are.
class Expected {
 public:
  explicit Expected(const SafetensorsFile& tensors, const SafetensorsFile* twin = nullptr)
      : tensors_(tensors), twin_(twin) {}

  const SafetensorsFile& tensors() const { return tensors_; }
  // Of a tensor, as its largest difference; 0 where it is not known.
  double own_error(const std::string& name) const;

 private:
  const SafetensorsFile& tensors_;
  const SafetensorsFile* twin_;
};

// True for the bias of keys, which has no true gradient unless keys are normalised: what is stored
// is rounding noise, which the optimiser turns into steps.
bool is_noise(const model::ParameterSet& parameters, const std::string& name);

// Compares those stored as "grad/...". `of_model`: in fp32 all gradients are compared on the scale
// of the whole model.
void compare_gradients(const model::ParameterSet& parameters, const Expected& expected,
                       double limit, bool of_model, Comparison& comparison);

// Compares weights stored under a prefix, "after3/".
void compare_parameters(const model::ParameterSet& parameters, const Expected& expected,
                        const std::string& prefix, double limit, bool relative,
                        Comparison& comparison);

// Compares outputs (B, T, E, N, V) with those stored under this name.
void compare_output(const std::string& name, const at::Tensor& ours, const Expected& expected,
                    double limit, Comparison& comparison);

// Compares a loss with the one stored under this name.
void compare_loss(const std::string& name, double loss, const Expected& expected, double limit,
                  Comparison& comparison);

}  // namespace aifs::conformance
