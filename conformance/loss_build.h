// SPDX-License-Identifier: Apache-2.0
// From the description of a loss in a reference case to a Loss, by way of the configuration that a
// training would have: translated by anemoi/, built by train/loss.
#pragma once

#include "conformance/loss_file.h"
#include "train/loss/loss_setup.h"

namespace aifs::conformance {

struct BuiltLoss {
  train::LossPtr loss;
  // Smoothers, projections and graphs it was built with, in order.
  std::vector<train::SparseRowsPtr> matrices;
  double value_limit = 1e-6, gradient_limit = 1e-6;  // fp32, relative to the (largest) value
  // Limit of single variables, where rounding is not averaged over variables.
  double per_variable_limit = 1e-6;
  bool has_gradient = true;  // false: the reference's is rounding noise
  // The value depends on which of the tiny coefficients round to 0.
  bool noisy = false;
};

// What a loss works on, besides what its file says.
struct LossUse {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Targets have the columns of predictions, as in training; else those of the whole dataset.
  bool of_outputs = false;
  const graph::NodeSet* nodes = nullptr;  // of the data in the case's graph, if it has one
  at::Tensor output_mask = {};            // (N) bool, true where the network decides
};

// `sample_weights` is for losses that take them, undefined otherwise. Throws NotSupported for a
// class or an option that is not known, other errors for what is not defined. With `matrices` those
// are used instead of what the options give: weights of neighbours are float32 numbers, whose last
// bit depends on the library's exponential.
BuiltLoss build_case_loss(const LossGrid& grid, const Json& config,
                          const at::Tensor& sample_weights, const LossUse& use,
                          const std::vector<train::SparseRowsPtr>& matrices = {});

// One scaler of a file that gives their options. A NaN mask has no factor: it comes with a batch.
train::Scaler build_case_scaler(const LossGrid& grid, const std::string& name, const LossUse& use);

}  // namespace aifs::conformance
