// SPDX-License-Identifier: Apache-2.0
// AdamW and AdEMAMix on the flat buffers of a ParameterSet, gradient clipping, and the state that a
// checkpoint must keep. Decay is decoupled and acts on every parameter (biases, norms, learnt
// features too); a parameter that never gets a gradient is left alone entirely, as PyTorch does.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "model/base/parameters.h"
#include "parallel/communicator.h"
#include "train/optim/parameter_groups.h"

namespace aifs::train {

enum class ClipKind { kNone, kValue, kNorm };

// AdEMAMix (Pagliardini et al. 2024) adds alpha times a second, slower mean of gradients, and
// decays within the update. alpha and the decay of the slow mean are led in over their warm-ups.
enum class OptimizerKind { kAdamW, kAdemamix };

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.01;
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta3 = 0.9999, alpha = 8.0;          // AdEMAMix
  int64_t alpha_warmup = 0, beta3_warmup = 0;  // steps; 0: none
};

// alpha and beta3 of step k (from 1).
double ademamix_alpha(const AdamWOptions& options, int64_t step);
double ademamix_beta3(const AdamWOptions& options, int64_t step);

// How the learning rate grows with the samples of a step: not, linearly, or with their root.
enum class LrScaling { kNone, kLinear, kSqrt };
double scaled_lr(double lr, LrScaling rule, int64_t samples_per_step, int64_t reference_samples);

// The gradients that a rank has, in any number of tensors, and the ranks that have others (null:
// none do).
struct OwnGradients {
  std::vector<at::Tensor> whole = {}, sliced = {};  // of whole tensors, and of slices of tensors
  parallel::Communicator* shards = nullptr;         // with other parts of either
  parallel::Communicator* tensor_ranks = nullptr;   // with the same ones and other slices
  parallel::Communicator* stages = nullptr;         // with those of other layers

  std::vector<at::Tensor> all() const;
};

// Clamps every element to [-limit, limit], or scales all by limit / norm where the global L2 norm
// exceeds `limit`. In place. Returns the norm before clipping for kNorm, else 0. The norm is that
// of what all ranks have: collective over them.
double clip_gradients(const OwnGradients& gradients, ClipKind kind, double limit);
inline double clip_gradients(const at::Tensor& flat_gradients, ClipKind kind, double limit) {
  return clip_gradients(OwnGradients{.whole = {flat_gradients}}, kind, limit);
}

// A stretch of the flat buffers that this rank updates: its first element there and in the moments,
// its values and gradients.
struct OwnPart {
  int64_t begin = 0, local_begin = 0;
  at::Tensor values, gradients;

  int64_t end() const { return begin + values.numel(); }
};

// Returns what a checkpoint keeps of an optimiser: tensors laid out as the flat values, by name.
using FlatState = std::pair<std::string, at::Tensor>;
struct OptimizerState {
  std::vector<FlatState> flats;
  int64_t num_steps = 0;
};

class AdamW {
 public:
  // `parameters` must be flat and outlive the optimiser.
  AdamW(const model::ParameterSet& parameters, const AdamWOptions& options);
  // Updates own parts only, which ascend; `local_size` elements in all, with moments on the host if
  // wanted: values and gradients then go there and back in every step.
  AdamW(const model::ParameterSet& parameters, const AdamWOptions& options,
        std::vector<OwnPart> parts, int64_t local_size, bool on_host);
  // Takes the same parts, with values or gradients that are now elsewhere.
  void set_parts(std::vector<OwnPart> parts) { parts_ = std::move(parts); }

  // Which parameters are updated, and how; all alike unless called. Parameters marked as unused are
  // left out of them.
  void set_ranges(std::vector<ParameterRange> ranges);

  // Parameters that got no gradient in the first backward pass; they are never updated.
  void exclude(const std::vector<std::string>& names);

  // One update with this learning rate, from the gradients in the flat buffer, clipped by value on
  // the way; clipped ones may take their place.
  void step(double lr, double clip = std::numeric_limits<double>::infinity());

  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t steps) { num_steps_ = steps; }
  // First and second moments: own parts one after another.
  const at::Tensor& moment1() const { return moment1_; }
  const at::Tensor& moment2() const { return moment2_; }

  // Everything that a checkpoint keeps, by name, laid out as the moments: they and what was
  // attached.
  const std::vector<FlatState>& states() const { return states_; }
  void attach(const std::string& name, const at::Tensor& flat) { states_.emplace_back(name, flat); }

 private:
  void leave_out(const model::Parameter& parameter);
  void step_range(const ParameterRange& range, double lr, double clip);
  // One stretch of values, gradients and moments.
  struct Stretch;
  // Describes one update: its learning rate and limit of gradients, and the corrections of the
  // moments.
  struct Rates;
  void step_stretch(const Stretch& stretch, double weight_decay, const Rates& rates);
  bool step_on_gpu(const Stretch& stretch, double weight_decay, const Rates& rates);

  const model::ParameterSet& parameters_;
  AdamWOptions options_;
  std::vector<OwnPart> parts_;

  at::Tensor moment1_, moment2_, slow_moment_;
  int64_t num_steps_ = 0;
  std::vector<ParameterRange> ranges_;
  std::vector<FlatState> states_;
};

// An update from `gradients`, those that the optimiser was made with, clipped by value on its way
// or by norm before it. Returns what clip_gradients() does.
double clipped_step(AdamW& optimizer, double lr, const OwnGradients& gradients, ClipKind kind,
                    double limit);

constexpr auto enum_table(ClipKind) {
  using enum ClipKind;
  return std::to_array<EnumName<ClipKind>>({{kNone, "none"}, {kValue, "value"}, {kNorm, "norm"}});
}

constexpr auto enum_table(OptimizerKind) {
  using enum OptimizerKind;
  return std::to_array<EnumName<OptimizerKind>>({{kAdamW, "adamw"}, {kAdemamix, "ademamix"}});
}

constexpr auto enum_table(LrScaling) {
  using enum LrScaling;
  return std::to_array<EnumName<LrScaling>>(
      {{kNone, "none"}, {kLinear, "linear"}, {kSqrt, "sqrt"}});
}

}  // namespace aifs::train
