// SPDX-License-Identifier: Apache-2.0
// AdamW on the flat buffers of a ParameterSet, gradient clipping, and the state that a checkpoint
// must keep. Decay is decoupled and acts on every parameter (biases, norms, learnt features too);
// a parameter that never gets a gradient is left alone entirely, as PyTorch does.
#pragma once

#include <vector>

#include "core/config.h"
#include "model/parameters.h"

namespace aifs::train {

enum class ClipKind { kNone, kValue, kNorm };

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

// Clamps every element to [-limit, limit], or scales all by limit / norm where the global L2 norm
// exceeds `limit`. In place. Returns the norm before clipping for kNorm, else 0.
double clip_gradients(const at::Tensor& flat_gradients, ClipKind kind, double limit);

class AdamW {
 public:
  // `parameters` must be flat and outlive the optimiser.
  AdamW(const model::ParameterSet& parameters, const AdamWOptions& options);

  // Parameters that got no gradient in the first backward pass; they are never updated.
  void exclude(const std::vector<std::string>& names);

  // One update with this learning rate, from the gradients in the flat buffer.
  void step(double lr);

  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t steps) { num_steps_ = steps; }
  // First and second moments, laid out as the flat values.
  const at::Tensor& moment1() const { return moment1_; }
  const at::Tensor& moment2() const { return moment2_; }

 private:
  bool step_on_gpu(double lr, double correction1, double correction2);

  const model::ParameterSet& parameters_;
  AdamWOptions options_;
  at::Tensor moment1_, moment2_;
  int64_t num_steps_ = 0;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // [begin, end) of the flat buffer
};

}  // namespace aifs::train

template <>
struct aifs::EnumNames<aifs::train::ClipKind> {
  using K = aifs::train::ClipKind;
  static constexpr std::array<std::pair<K, const char*>, 3> table{
      {{K::kNone, "none"}, {K::kValue, "value"}, {K::kNorm, "norm"}}};
};
